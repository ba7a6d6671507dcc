internal import Dispatch
internal import Foundation
internal import JWTKit

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The keys that tokens may be signed with.
struct SigningKeys: Sendable {
  var collection = JWTKeyCollection()
  /// The names of the keys, each of which has one.
  var names: Set<String> = []

  /// Returns whether a token that names a key, or none, may be looked at.
  ///
  /// The collection takes any of its keys for a name that it does not know.
  func mayVerify(_ name: String?) -> Bool { name.map(names.contains) ?? (names.count == 1) }
}

/// The place of keys: a file, or a URL.
struct JWKSSource: Sendable {
  let place: String

  /// - Throws: ``ServerError`` for a URL whose answer anybody on the way could change.
  init(place: String) throws(ServerError) {
    self.place = place
    guard let url = Self.url(place), url.scheme?.lowercased() != "https" else { return }
    guard ["localhost", "127.0.0.1", "::1", "[::1]"].contains(url.host?.lowercased() ?? "") else {
      throw ServerError(
        expected: "a file or an https URL for the keys", found: place,
        advice: "use https: whoever changes the keys on their way makes tokens of their own")
    }
  }

  /// The place as a URL of HTTP; `nil` for a file.
  private static func url(_ place: String) -> URL? {
    let lowercased = place.lowercased()
    return lowercased.hasPrefix("https://") || lowercased.hasPrefix("http://") ? URL(string: place) : nil
  }

  /// Returns the keys, without those of kinds that tokens must not be signed with, such as shared secrets.
  ///
  /// - Throws: ``ServerError``.
  func keys() async throws(ServerError) -> SigningKeys {
    let expected = "keys as JWKS (EC P-256, RSA of 2,048 bits or more, Ed25519) at \(place)"
    let found: JWKS
    do { found = try JSONDecoder().decode(JWKS.self, from: try await bytes()) } catch {
      throw ServerError(expected: expected, found: "none that can be read", advice: "name another file or URL with --jwks")
    }
    var keys = SigningKeys()
    for var key in found.keys {
      // Many issuers leave the algorithm out; with it, a key verifies nothing that names another one.
      if key.keyType == .ecdsa, key.curve == .ecdsa(.p256) {
        key.algorithm = key.algorithm ?? .es256
      } else if key.keyType == .octetKeyPair, key.curve == .eddsa(.ed25519) {
        key.algorithm = key.algorithm ?? .eddsa
      } else if key.keyType == .rsa, key.modulus?.count ?? 0 >= 342 {
        key.algorithm = key.algorithm ?? .rs256
      }
      guard let algorithm = key.algorithm, [.es256, .rs256, .eddsa].contains(algorithm), let name = key.keyIdentifier else { continue }
      do {
        try await keys.collection.add(jwk: key)
        keys.names.insert(name.string)
      } catch { continue }
    }
    guard !keys.names.isEmpty else {
      throw ServerError(expected: expected, found: "keys of other kinds", advice: "name another file or URL with --jwks")
    }
    return keys
  }

  private func bytes() async throws -> Data {
    if let url = Self.url(place) {
      let (data, response) = try await URLSession.shared.data(from: url)
      // A redirection away from https would be as bad as an address without it.
      guard (response as? HTTPURLResponse)?.statusCode == 200, response.url?.scheme == url.scheme else {
        throw URLError(.badServerResponse)
      }
      return data
    }
    let place = place
    return try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try Data(contentsOf: URL(fileURLWithPath: place)) }) }
    }
  }
}
