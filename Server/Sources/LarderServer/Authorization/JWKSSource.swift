internal import Dispatch
internal import Foundation
internal import JWTKit

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Public keys that tokens may be signed with.
struct SigningKeys: Sendable {
  var collection = JWTKeyCollection()
  /// Names (`kid`) of the keys.
  ///
  /// A key without a name is left out.
  var names: Set<String> = []

  /// Returns whether to verify a token with this `kid`: the key exists, or the token names none and there is only one key.
  ///
  /// For an unknown name, the collection would verify with any of its keys.
  func mayVerify(_ name: String?) -> Bool { name.map(names.contains) ?? (names.count == 1) }
}

/// Location of the keys: a file or a URL.
struct JWKSSource: Sendable {
  let place: String

  /// - Throws: ``ServerError`` for a URL without TLS on another machine, since its answer could be changed on the way.
  init(place: String) throws(ServerError) {
    self.place = place
    guard let url = Self.url(place), url.scheme?.lowercased() != "https" else { return }
    guard ["localhost", "127.0.0.1", "::1", "[::1]"].contains(url.host?.lowercased() ?? "") else {
      throw ServerError(
        expected: "a file or an https URL for the keys", found: place,
        advice: "use https: whoever changes the keys on their way makes tokens of their own")
    }
  }

  /// Returns the location as an http or https URL, or `nil` for a file.
  private static func url(_ place: String) -> URL? {
    let lowercased = place.lowercased()
    return lowercased.hasPrefix("https://") || lowercased.hasPrefix("http://") ? URL(string: place) : nil
  }

  /// Returns the keys, without kinds that must not sign tokens, such as shared secrets.
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
      // Many issuers omit the algorithm. With it set, a key does not verify a token of another algorithm.
      if key.keyType == .ecdsa, key.curve == .ecdsa(.p256) {
        key.algorithm = key.algorithm ?? .es256
      } else if key.keyType == .octetKeyPair, key.curve == .eddsa(.ed25519) {
        key.algorithm = key.algorithm ?? .eddsa
        // 342 characters of base64url are 256 bytes, the modulus of an RSA key of 2,048 bits.
      } else if key.keyType == .rsa, key.modulus?.count ?? 0 >= 342 {
        key.algorithm = key.algorithm ?? .rs256
      }
      // Shared secrets are left out, since everybody who verifies with one can also sign with it.
      guard let algorithm = key.algorithm, [.es256, .rs256, .eddsa].contains(algorithm), let name = key.keyIdentifier else { continue }
      do {
        try await keys.collection.add(jwk: key)
        keys.names.insert(name.string)
        // One key that cannot be used must not disable the others.
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
      // A redirect from https to http would let anybody on the way replace the keys.
      guard (response as? HTTPURLResponse)?.statusCode == 200, response.url?.scheme == url.scheme else {
        throw URLError(.badServerResponse)
      }
      return data
    }
    let place = place
    // Reading a file blocks, which no thread of Swift's tasks may do.
    return try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try Data(contentsOf: URL(fileURLWithPath: place)) }) }
    }
  }
}
