// WeatherKit/ is the client of Apple's REST API: locally signed tokens, the documented data sets, and failures as ProviderError.
// Invariant: the private key stays in memory and in its file. No error, description or log has any part of it.

public import Foundation

/// Private key of an Apple developer team, which signs requests to WeatherKit.
public struct WeatherKitKey: Sendable {
  /// Apple's identifier of the key, ten characters.
  let keyID: String
  /// Apple's identifier of the team, ten characters.
  let teamID: String
  /// Identifier of the service in reverse-DNS form.
  let serviceID: String
  private let key: SigningKey

  /// Reads a key from the file `AuthKey_….p8`, which Apple lets you download once.
  ///
  /// - Throws: ``ProviderError/misconfigured(_:)`` if the file is missing, can be read by others, or holds no such key.
  public init(file: URL, keyID: String, teamID: String, serviceID: String) throws(ProviderError) {
    let text: String
    let mode: Int
    do {
      mode = (try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber)?.intValue ?? 0
      text = try String(contentsOf: file, encoding: .utf8)
    } catch {
      throw .misconfigured("the WeatherKit key file cannot be read: \(file.path)")
    }
    // Refused as by ssh: any other account of the machine could copy the key.
    guard mode & 0o077 == 0 else {
      throw .misconfigured("the WeatherKit key file can be read by others; type `chmod 600 \(file.path)`")
    }
    try self.init(pem: text, keyID: keyID, teamID: teamID, serviceID: serviceID)
  }

  /// Reads a key from its text in PEM form.
  public init(pem: String, keyID: String, teamID: String, serviceID: String) throws(ProviderError) {
    // The ids are put into the token's JSON without escaping: a quotation mark would change its claims.
    for id in [keyID, teamID, serviceID] where id.isEmpty || !id.hasOnlyAlphanumerics(and: ".-") {
      throw .misconfigured("a WeatherKit id has letters, digits, points and hyphens only")
    }
    key = try SigningKey(pem: pem)
    self.keyID = keyID
    self.teamID = teamID
    self.serviceID = serviceID
  }

  /// Fingerprint of the key, a hash of its public half.
  var fingerprint: String { key.fingerprint }

  func signature(of text: String) throws(ProviderError) -> Data { try key.signature(of: text) }
}

extension WeatherKitKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Identifier of the key, without any part of the key itself.
  public var description: String { "WeatherKitKey(\(keyID))" }
  /// Identifier of the key, without any part of the key itself.
  public var debugDescription: String { description }
  /// Empty mirror, so that `dump` prints no part of the key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
