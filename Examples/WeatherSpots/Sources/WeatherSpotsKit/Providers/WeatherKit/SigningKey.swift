import Foundation

#if canImport(CryptoKit)
  import CryptoKit
#elseif WeatherKit
  import Crypto
#endif

extension WeatherKitKey {
  /// Throws where this build cannot sign, and the mend is another build.
  ///
  /// Call it before the settings of the key are read: a reader who lacks the trait needs no key file first.
  public static func checkSigning() throws(ProviderError) {
    #if !(canImport(CryptoKit) || WeatherKit)
      throw .misconfigured(SigningKey.refusal)
    #endif
  }
}

/// The private half of a key pair of the curve P-256.
///
/// CryptoKit signs where the system has it, and swift-crypto with the package's trait `WeatherKit`. Without both, no key can be made: see
/// Docs/Design/0020-the-page-is-a-package.md.
struct SigningKey: Sendable {
  #if canImport(CryptoKit) || WeatherKit
    private let key: P256.Signing.PrivateKey

    /// Reads a key in PEM form.
    init(pem: String) throws(ProviderError) {
      // The error of the parser is not passed on: nothing of the text may be shown.
      do { key = try P256.Signing.PrivateKey(pemRepresentation: pem) } catch {
        throw .misconfigured("the WeatherKit key file holds no private key of the curve P-256 in PEM form")
      }
    }

    /// A hash of the public half, as 16 digits.
    var fingerprint: String {
      SHA256.hash(data: key.publicKey.rawRepresentation).prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Signs a text by ES256.
    func signature(of text: String) throws(ProviderError) -> Data {
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
