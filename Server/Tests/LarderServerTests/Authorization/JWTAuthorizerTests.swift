import Crypto
import CryptoExtras
import Foundation
import Hummingbird
import JWTKit
import LarderWire
import Logging
import ServiceLifecycle
import Synchronization
import Testing

@testable import LarderServer

@Suite struct JWTAuthorizerTests {
  private struct Claims: JWTPayload {
    var sub: String?
    var exp: Int?
    var nbf: Int?
    var iss: String?
    var aud: [String]?
    var audience: String?
    var scopes: [String]

    enum CodingKeys: String, CodingKey { case sub, exp, nbf, iss, aud, scopes }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(sub, forKey: .sub)
      try container.encodeIfPresent(exp, forKey: .exp)
      try container.encodeIfPresent(nbf, forKey: .nbf)
      try container.encodeIfPresent(iss, forKey: .iss)
      if let audience { try container.encode(audience, forKey: .aud) } else { try container.encodeIfPresent(aud, forKey: .aud) }
      try container.encode(scopes, forKey: .scopes)
    }

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  private static func base64URL(_ text: String) -> String {
    text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }

  private static func entry(_ key: ES256PrivateKey, kid: String = "k1") throws -> String {
    let parameters = try #require(key.parameters)
    return #"{"kty":"EC","crv":"P-256","kid":"\#(kid)","x":"\#(base64URL(parameters.x))","y":"\#(base64URL(parameters.y))"}"#
  }

  private static func set(_ entries: String...) -> String { #"{"keys":[\#(entries.joined(separator: ","))]}"# }

  private static func write(_ key: ES256PrivateKey, to path: String) throws {
    try set(try entry(key)).write(toFile: path, atomically: true, encoding: .utf8)
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

  @Test func aTokenWithoutASignatureOrBeforeItsTimeIsRefused() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    try Self.write(key, to: directory.file("jwks"))
    let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    let keys = await JWTKeyCollection().add(ecdsa: key, kid: "k1")
    let now = Int(Date().timeIntervalSince1970)
    let token = try await keys.sign(Claims(sub: "ann", exp: now + 1_000, nbf: now - 1_000, scopes: ["a:r"]), kid: "k1")
    #expect(try await authorizer.identity(of: token).name == "ann")
    let early = try await keys.sign(Claims(sub: "ann", exp: now + 1_000, nbf: now + 900, scopes: ["a:r"]), kid: "k1")
    await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: early) }
    let parts = token.split(separator: ".")
    for header in [#"{"alg":"none","typ":"JWT"}"#, #"{"alg":"none","kid":"k1"}"#, #"{"alg":"None","kid":"k1"}"#, #"{"kid":"k1"}"#] {
      let packed = Self.base64URL(Data(header.utf8).base64EncodedString())
      for signature in ["", parts[2]] {
        await #expect(throws: SyncProblem.unauthorized, "\(header)") {
          try await authorizer.identity(of: "\(packed).\(parts[1]).\(signature)")
        }
      }
    }
  }

  /// Nothing that `crit` may name is understood here, whatever the token lists: also what is no list, and names that are in the header.
  @Test func aTokenWithCriticalExtensionsIsRefused() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    try Self.write(key, to: directory.file("jwks"))
    let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    let keys = await JWTKeyCollection().add(ecdsa: key, kid: "k1")
    let claims = Claims(sub: "ann", exp: Int(Date().timeIntervalSince1970) + 1_000, scopes: ["a:r"])
    let critical: [JWTHeaderField] = [
      .array([.string("b64")]), .array([.string("exp")]), .array([]), .string("exp"), .null, .bool(true), .object(["exp": .bool(true)]),
    ]
    for names in critical {
      let token = try await keys.sign(claims, kid: "k1", header: ["crit": names, "b64": .bool(false), "exp": .int(1)])
      await #expect(throws: SyncProblem.unauthorized, "\(names)") { try await authorizer.identity(of: token) }
    }
    let extended = try await keys.sign(claims, kid: "k1", header: ["b64": .bool(false)])
    #expect(try await authorizer.identity(of: extended).name == "ann")
  }

  /// The name of an identity is shown in logs and terminals.
  @Test func aNameThatATerminalObeysIsRefused() async throws {
    let directory = try TemporaryDirectory()
    let key = ES256PrivateKey()
    try Self.write(key, to: directory.file("jwks"))
    let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    let keys = await JWTKeyCollection().add(ecdsa: key, kid: "k1")
    let later = Int(Date().timeIntervalSince1970) + 1_000
    for name in [
      "a\u{0}b", "\u{1B}[2J", "ann\n", "a\tb", "\u{7F}", "\u{85}", "\u{202E}nna", "\u{2028}", String(repeating: "n", count: 1_025),
    ] {
      let token = try await keys.sign(Claims(sub: name, exp: later, scopes: ["a:r"]), kid: "k1")
      await #expect(throws: SyncProblem.unauthorized, "\(name.debugDescription.prefix(20))") { try await authorizer.identity(of: token) }
    }
    for name in ["ann@example.org", "auth0|5f7c", "アン", String(repeating: "n", count: 1_024)] {
      let token = try await keys.sign(Claims(sub: name, exp: later, scopes: ["a:r"]), kid: "k1")
      #expect(try await authorizer.identity(of: token).name == name)
    }
  }

  /// A token is looked at with the key that it names; where there is one key, it need not name it.
  @Test func aTokenNamesAKeyThatThereIs() async throws {
    let directory = try TemporaryDirectory()
    let (key, other) = (ES256PrivateKey(), ES256PrivateKey())
    let claims = Claims(sub: "ann", exp: Int(Date().timeIntervalSince1970) + 1_000, scopes: ["a:r"])
    let nameless = try await JWTKeyCollection().add(ecdsa: key).sign(claims)
    #expect(try DefaultJWTParser().parse(Array(nameless.utf8), as: Read.self).header.kid == nil)
    let unknown = try await JWTKeyCollection().add(ecdsa: key, kid: "k9").sign(claims, kid: "k9")
    let named = try await JWTKeyCollection().add(ecdsa: key, kid: "k1").sign(claims, kid: "k1")
    for isAlone in [true, false] {
      // The first key is the one that verifies what names none, or one that is not there, if nobody looks.
      let keys = isAlone ? Self.set(try Self.entry(key)) : Self.set(try Self.entry(key), try Self.entry(other, kid: "k2"))
      try keys.write(toFile: directory.file("jwks"), atomically: true, encoding: .utf8)
      let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
      #expect(try await authorizer.identity(of: named).name == "ann")
      await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: unknown) }
      if isAlone {
        #expect(try await authorizer.identity(of: nameless).name == "ann")
      } else {
        await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: nameless) }
      }
    }
  }

  private struct Read: JWTPayload {
    var sub: String
    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  @Test func keysOfAllThreeKindsAreTaken() async throws {
    let directory = try TemporaryDirectory()
    let (elliptic, edwards) = (ES256PrivateKey(), Curve25519.Signing.PrivateKey())
    let modular = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let numbers = try modular.publicKey.getKeyPrimitives()
    let (n, e) = (Self.base64URL(numbers.modulus.base64EncodedString()), Self.base64URL(numbers.publicExponent.base64EncodedString()))
    let x = Self.base64URL(edwards.publicKey.rawRepresentation.base64EncodedString())
    try Self.set(
      try Self.entry(elliptic, kid: "es"), #"{"kty":"RSA","kid":"rs","n":"\#(n)","e":"\#(e)"}"#,
      #"{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"\#(x)"}"#
    ).write(toFile: directory.file("jwks"), atomically: true, encoding: .utf8)
    let authorizer = try await JWTAuthorizer(jwks: directory.file("jwks"), logger: LogLines().logger())
    let signers = await JWTKeyCollection().add(ecdsa: elliptic, kid: "es").add(eddsa: EdDSA.PrivateKey(backing: edwards), kid: "ed")
      .add(rsa: try Insecure.RSA.PrivateKey(backing: modular), digestAlgorithm: .sha256, kid: "rs")
      .add(rsa: try Insecure.RSA.PrivateKey(backing: modular), digestAlgorithm: .sha512, kid: "rs512")
    let later = Int(Date().timeIntervalSince1970) + 1_000
    for kid: JWKIdentifier in ["es", "rs", "ed"] {
      let token = try await signers.sign(Claims(sub: "ann", exp: later, scopes: ["a:r"]), kid: kid)
      #expect(try await authorizer.identity(of: token).name == "ann", "\(kid)")
      // What another key has signed is not taken under the name of this one.
      let parts = token.split(separator: ".")
      for other: JWKIdentifier in ["es", "rs", "ed"] where other != kid {
        let signature = try await signers.sign(Claims(sub: "ann", exp: later, scopes: ["a:r"]), kid: other).split(separator: ".")[2]
        await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: "\(parts[0]).\(parts[1]).\(signature)") }
      }
    }
    let stranger = try await signers.sign(Claims(sub: "ann", exp: later, scopes: ["a:r"]), kid: "rs512")
    await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: stranger) }
  }

  /// What a place of keys on this machine answers.
  private final class Keys: HTTPResponder {
    typealias Context = BasicRequestContext
    private let text: Mutex<String>

    init(_ text: String) { self.text = Mutex(text) }
    func set(_ new: String) { text.withLock { $0 = new } }

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
      Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: text.withLock { $0 })))
    }
  }

  @Test(.timeLimit(.minutes(15))) func aKeyThatReplacesAnotherIsTaken() async throws {
    let (old, new) = (ES256PrivateKey(), ES256PrivateKey())
    let keys = Keys(Self.set(try Self.entry(old, kid: "old")))
    let (ready, continuation) = AsyncStream.makeStream(of: Int.self)
    let quiet = Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() }
    let application = Application(
      responder: keys, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: quiet)
    let group = ServiceGroup(configuration: .init(services: [application], logger: quiet))
    let running = Task { try await group.run() }
    let result: Result<Void, any Error>
    do {
      let port = try #require(await ready.first { _ in true })
      let authorizer = try await JWTAuthorizer(
        jwks: "http://127.0.0.1:\(port)/jwks", audience: nil, issuer: nil, shortest: .zero, logger: LogLines().logger())
      let signers = await JWTKeyCollection().add(ecdsa: old, kid: "old").add(ecdsa: new, kid: "new")
      let claims = Claims(sub: "ann", exp: Int(Date().timeIntervalSince1970) + 1_000, scopes: ["a:r"])
      let (before, after) = (try await signers.sign(claims, kid: "old"), try await signers.sign(claims, kid: "new"))
      #expect(try await authorizer.identity(of: before).name == "ann")
      await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: after) }
      // What cannot be read leaves the keys that are known.
      keys.set("nothing")
      await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: after) }
      #expect(try await authorizer.identity(of: before).name == "ann")
      keys.set(Self.set(try Self.entry(new, kid: "new")))
      #expect(try await authorizer.identity(of: after).name == "ann")
      await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: before) }
      result = .success(())
    } catch { result = .failure(error) }
    await group.triggerGracefulShutdown()
    try await running.value
    try result.get()
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
