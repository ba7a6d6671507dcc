internal import Dispatch
internal import Foundation
internal import JWTKit

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The place of keys: a file, or a URL.
struct JWKSSource: Sendable {
  let place: String

  /// Returns the keys, without those of kinds that tokens must not be signed with, such as shared secrets.
  ///
  /// - Throws: ``ServerError``.
  func keys() async throws(ServerError) -> JWTKeyCollection {
    let expected = "keys as JWKS (EC P-256, RSA of 2,048 bits or more, Ed25519) at \(place)"
    let found: JWKS
    do { found = try JSONDecoder().decode(JWKS.self, from: try await bytes()) } catch {
      throw ServerError(expected: expected, found: "none that can be read", advice: "name another file or URL with --jwks")
    }
    let collection = JWTKeyCollection()
    var count = 0
    for var key in found.keys {
      // Many issuers leave the algorithm out; with it, a key verifies nothing that names another one.
      if key.keyType == .ecdsa, key.curve == .ecdsa(.p256) {
        key.algorithm = key.algorithm ?? .es256
      } else if key.keyType == .octetKeyPair, key.curve == .eddsa(.ed25519) {
        key.algorithm = key.algorithm ?? .eddsa
      } else if key.keyType == .rsa, key.modulus?.count ?? 0 >= 342 {
        key.algorithm = key.algorithm ?? .rs256
      }
      guard let algorithm = key.algorithm, [.es256, .rs256, .eddsa].contains(algorithm) else { continue }
      do {
        try await collection.add(jwk: key)
        count += 1
      } catch { continue }
    }
    guard count > 0 else {
      throw ServerError(expected: expected, found: "keys of other kinds", advice: "name another file or URL with --jwks")
    }
    return collection
  }

  private func bytes() async throws -> Data {
    if place.hasPrefix("https://") || place.hasPrefix("http://"), let url = URL(string: place) {
      let (data, response) = try await URLSession.shared.data(from: url)
      guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
      return data
    }
    let place = place
    return try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try Data(contentsOf: URL(fileURLWithPath: place)) }) }
    }
  }
}
