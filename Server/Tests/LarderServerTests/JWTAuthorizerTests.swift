import Foundation
import JWTKit
import LarderSync
import Testing

@testable import LarderServer

@Suite struct JWTAuthorizerTests {
  private struct Claims: JWTPayload {
    var sub: String?
    var exp: Int?
    var scopes: [String]
    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  private static func base64URL(_ text: String) -> String {
    text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }

  @Test func aSignedTokenIsAnIdentityAndNoOtherIs() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    let parameters = try #require(key.parameters)
    let jwks =
      #"{"keys":[{"kty":"EC","crv":"P-256","kid":"k1","x":"\#(Self.base64URL(parameters.x))","y":"\#(Self.base64URL(parameters.y))"}]}"#
    try jwks.write(toFile: directory.file("jwks"), atomically: true, encoding: .utf8)
    let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    let keys = await JWTKeyCollection().add(ecdsa: key, kid: "k1")
    let later = Int(Date().timeIntervalSince1970) + 1_000
    let token = try await keys.sign(Claims(sub: "ann", exp: later, scopes: ["user/42:rw", "team/*:r", "nonsense"]), kid: "k1")
    let identity = try await authorizer.identity(of: token)
    #expect(identity == Identity("ann", grants: [ScopeGrant("user/42", [.read, .write]), ScopeGrant("team/*", .read)]))
    var refused = [
      try await keys.sign(Claims(sub: "ann", exp: 1_000, scopes: []), kid: "k1"),
      try await keys.sign(Claims(sub: "ann", exp: nil, scopes: []), kid: "k1"),
      try await keys.sign(Claims(sub: nil, exp: later, scopes: []), kid: "k1"),
      String(token.dropLast(8)) + "AAAAAAAA", "", "a.b.c",
    ]
    let others = await JWTKeyCollection().add(ecdsa: ES256PrivateKey(), kid: "k1").add(
      hmac: "a secret of thirty-two bytes or more, for HS256", digestAlgorithm: .sha256, kid: "h")
    refused.append(try await others.sign(Claims(sub: "ann", exp: later, scopes: []), kid: "k1"))
    refused.append(try await others.sign(Claims(sub: "ann", exp: later, scopes: []), kid: "h"))
    for token in refused { await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: token) } }
  }

  @Test func keysOfOtherKindsAreRefused() async throws {
    let directory = try TemporaryDirectory()
    try #"{"keys":[{"kty":"oct","kid":"h","k":"c2VjcmV0","alg":"HS256"}]}"#.write(
      toFile: directory.file("jwks"), atomically: true, encoding: .utf8)
    await #expect(throws: ServerError.self) { try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger()) }
  }
}
