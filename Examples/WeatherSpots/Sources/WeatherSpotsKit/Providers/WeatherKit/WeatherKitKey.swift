// WeatherKit/ speaks Apple's REST API: a token signed here, the data sets as they are documented, and its failures as ProviderError.
// Invariant: the private key stays in memory and in its file; no error, description or log has any part of it.

public import Foundation

/// The private key of an Apple developer team, which signs requests to WeatherKit.
public struct WeatherKitKey: Sendable {
  /// The ten characters that Apple calls the key.
  let keyID: String
  /// The ten characters that Apple calls the team.
  let teamID: String
  /// The service's name in reverse-DNS form.
  let serviceID: String
  private let key: SigningKey

  /// Reads a key from the file that Apple gives out once, `AuthKey_….p8`.
  ///
  /// - Throws: ``ProviderError/misconfigured(_:)`` when the file is missing, can be read by others, or holds no such key.
  public init(file: URL, keyID: String, teamID: String, serviceID: String) throws(ProviderError) {
    let text: String
    let mode: Int
    do {
      mode = (try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber)?.intValue ?? 0
      text = try String(contentsOf: file, encoding: .utf8)
    } catch {
      throw .misconfigured("the WeatherKit key file cannot be read: \(file.path)")
    }
    guard mode & 0o077 == 0 else {
      throw .misconfigured("the WeatherKit key file can be read by others; type `chmod 600 \(file.path)`")
    }
    try self.init(pem: text, keyID: keyID, teamID: teamID, serviceID: serviceID)
  }

  /// Reads a key from the text of such a file.
  public init(pem: String, keyID: String, teamID: String, serviceID: String) throws(ProviderError) {
    // The ids go into JSON and into a header as they are.
    for id in [keyID, teamID, serviceID] where id.isEmpty || !id.utf8.allSatisfy(Self.isAllowed) {
      throw .misconfigured("a WeatherKit id has letters, digits, points and hyphens only")
    }
    key = try SigningKey(pem: pem)
    self.keyID = keyID
    self.teamID = teamID
    self.serviceID = serviceID
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "."), UInt8(ascii: "-"): true
    default: false
    }
  }

  /// The fingerprint of the key, a hash of its public half.
  var fingerprint: String { key.fingerprint }

  func signature(of text: String) throws(ProviderError) -> Data { try key.signature(of: text) }
}

extension WeatherKitKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The key's id, and nothing of the key.
  public var description: String { "WeatherKitKey(\(keyID))" }
  /// The key's id, and nothing of the key.
  public var debugDescription: String { description }
  /// Nothing, so that dumping shows nothing either.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
