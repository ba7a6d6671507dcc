import Foundation
import JWTKit
import LarderSync
import Testing

@testable import LarderServer

@Suite struct JWTAuthorizerTests {
  private struct Claims: JWTPayload {
    var sub: String?
    var exp: Int?
    var iss: String?
    var aud: [String]?
    var audience: String?
    var scopes: [String]

    enum CodingKeys: String, CodingKey { case sub, exp, iss, aud, scopes }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(sub, forKey: .sub)
      try container.encodeIfPresent(exp, forKey: .exp)
      try container.encodeIfPresent(iss, forKey: .iss)
      if let audience { try container.encode(audience, forKey: .aud) } else { try container.encodeIfPresent(aud, forKey: .aud) }
      try container.encode(scopes, forKey: .scopes)
    }

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  private static func base64URL(_ text: String) -> String {
    text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }

  private static func write(_ key: ES256PrivateKey, to path: String) throws {
    let parameters = try #require(key.parameters)
    let jwks =
      #"{"keys":[{"kty":"EC","crv":"P-256","kid":"k1","x":"\#(Self.base64URL(parameters.x))","y":"\#(Self.base64URL(parameters.y))"}]}"#
    try jwks.write(toFile: path, atomically: true, encoding: .utf8)
  }

  @Test func aSignedTokenIsAnIdentityAndNoOtherIs() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    try Self.write(key, to: directory.file("jwks"))
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

  @Test func aTokenForAnotherServiceOrFromAnotherIssuerIsRefused() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    try Self.write(key, to: directory.file("jwks"))
    let keys = await JWTKeyCollection().add(ecdsa: key, kid: "k1")
    let later = Int(Date().timeIntervalSince1970) + 1_000
    let strict = try await JWTAuthorizer(
      jwks: directory.file("jwks"), audience: "larder", issuer: "https://issuer", logger: LogLines().logger())
    let lenient = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    func claims(_ issuer: String?, _ audiences: [String]?, audience: String? = nil) -> Claims {
      Claims(sub: "ann", exp: later, iss: issuer, aud: audiences, audience: audience, scopes: ["a:r"])
    }
    for claims in [claims("https://issuer", ["other", "larder"]), claims("https://issuer", nil, audience: "larder")] {
      let token = try await keys.sign(claims, kid: "k1")
      #expect(try await strict.identity(of: token).name == "ann")
    }
    for claims in [
      claims(nil, ["larder"]), claims("https://other", ["larder"]), claims("https://issuer", nil), claims("https://issuer", []),
      claims("https://issuer", ["other"]), claims("https://issuer", nil, audience: "larder2"),
    ] {
      let token = try await keys.sign(claims, kid: "k1")
      await #expect(throws: SyncProblem.unauthorized) { try await strict.identity(of: token) }
      #expect(try await lenient.identity(of: token).name == "ann")
    }
  }

  @Test(arguments: ["http://example.com/jwks", "HTTP://10.0.0.1/jwks", "http://localhost.example.com/jwks", "http:///jwks"])
  func keysThatCouldBeChangedOnTheirWayAreNotAskedFor(place: String) async throws {
    #expect {
      _ = try JWKSSource(place: place)
    } throws: { error in
      "\(error)".contains("expected a file or an https URL")
    }
    for place in ["https://example.com/jwks", "http://127.0.0.1:1/jwks", "http://localhost/jwks", "jwks.json"] {
      _ = try JWKSSource(place: place)
    }
  }

  @Test func keysOfOtherKindsAreRefused() async throws {
    let directory = try TemporaryDirectory()
    try #"{"keys":[{"kty":"oct","kid":"h","k":"c2VjcmV0","alg":"HS256"}]}"#.write(
      toFile: directory.file("jwks"), atomically: true, encoding: .utf8)
    await #expect(throws: ServerError.self) { try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger()) }
  }
}
