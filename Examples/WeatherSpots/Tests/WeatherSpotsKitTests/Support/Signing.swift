import Foundation
import Testing

@testable import WeatherSpotsKit

#if canImport(CryptoKit)
  import CryptoKit
#elseif WeatherKit
  import Crypto
#endif

extension Signing {
  #if canImport(CryptoKit) || WeatherKit
    /// Whether a token is signed by the key.
    static func verifies(_ token: String, _ pem: String) throws -> Bool {
      let parts = token.split(separator: ".").map(String.init)
      guard parts.count == 3, let signature = Data(base64URL: parts[2]) else { return false }
      let key = try P256.Signing.PrivateKey(pemRepresentation: pem).publicKey
      return key.isValidSignature(try P256.Signing.ECDSASignature(rawRepresentation: signature), for: Data("\(parts[0]).\(parts[1])".utf8))
    }
  #else
    static func verifies(_ token: String, _ pem: String) throws -> Bool { throw ProviderError.misconfigured("expected a build that signs") }
  #endif
}

/// A build without the trait.
@Suite struct NoSigningTests {
  @Test(.enabled("this build signs") { !Signing.isBuilt }) func withoutTheTraitAKeyIsRefusedWithTheWayToBuild() throws {
    let way = "swift build --package-path Examples/WeatherSpots --product weather-spots --traits WeatherKit"
    #expect { try WeatherKitKey.checkSigning() } throws: { "\($0)".contains(way) }
    #expect { try WeatherKitKey(pem: "", keyID: "A", teamID: "B", serviceID: "c") } throws: { "\($0)".contains(way) }
  }

  @Test(.needsSigning) func withTheTraitNothingIsRefusedBeforehand() throws { try WeatherKitKey.checkSigning() }
}
