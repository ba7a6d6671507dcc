import Foundation

#if canImport(CryptoKit)
  import CryptoKit
#elseif WeatherKit
  import Crypto
#endif

extension WeatherKitKey {
  /// Throws ``ProviderError/misconfigured(_:)`` if this build cannot sign requests, with the command for a build that can.
  ///
  /// Call it before you read the settings of the key, so that nobody sets up a key file first for a build that cannot use it.
  public static func checkSigning() throws(ProviderError) {
    #if !(canImport(CryptoKit) || WeatherKit)
      throw .misconfigured(SigningKey.refusal)
    #endif
  }
}

/// Private key of the curve P-256.
///
/// CryptoKit signs on systems that have it, and swift-crypto does with the package's trait `WeatherKit`. Without either, creating a key
/// throws. Docs/Design/0020-the-page-is-a-package.md has the reasons.
struct SigningKey: Sendable {
  #if canImport(CryptoKit) || WeatherKit
    private let key: P256.Signing.PrivateKey

    /// Decodes a key in PEM form.
    init(pem: String) throws(ProviderError) {
      // The parser's error is dropped, since it may quote the private key.
      do { key = try P256.Signing.PrivateKey(pemRepresentation: pem) } catch {
        throw .misconfigured("the WeatherKit key file holds no private key of the curve P-256 in PEM form")
      }
    }

    /// First 16 hexadecimal digits of the SHA-256 hash of the public key.
    var fingerprint: String {
      SHA256.hash(data: key.publicKey.rawRepresentation).prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the ES256 signature of a text.
    func signature(of text: String) throws(ProviderError) -> Data {
      // The raw form: a JSON Web Signature has r and s side by side (RFC 7518, 3.4), not in DER.
      do { return try key.signature(for: Data(text.utf8)).rawRepresentation } catch {
        throw .misconfigured("the WeatherKit key cannot sign")
      }
    }
  #else
    static let refusal = """
      this build cannot sign requests to WeatherKit; build it with \
      `swift build --package-path Examples/WeatherSpots --product weather-spots --traits WeatherKit`
      """

    let fingerprint = ""

    init(pem: String) throws(ProviderError) { throw .misconfigured(Self.refusal) }

    func signature(of text: String) throws(ProviderError) -> Data { throw .misconfigured(Self.refusal) }
  #endif
}
