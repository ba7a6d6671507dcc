internal import Foundation
internal import JWTKit
public import LarderWire
public import Logging
internal import Synchronization

/// Authorizer for JSON Web Tokens that are signed with ES256, RS256 or EdDSA.
///
/// Use it when an issuer already gives tokens to your users. Set `audience` if the issuer signs tokens for other services, too.
///
/// The claim `sub` is the name of the identity, `exp` is required, and `scopes` lists the grants, such as `["user/42:rw", "team/*:r"]`.
public final class JWTAuthorizer: Authorizer {
  private struct Claims: JWTPayload {
    var sub: SubjectClaim
    var exp: ExpirationClaim
    var nbf: NotBeforeClaim?
    var iss: String?
    var aud: Audiences?
    var scopes: [String]

    func verify(using algorithm: some JWTAlgorithm) throws {
      try exp.verifyNotExpired()
      try nbf?.verifyNotBefore()
    }
  }

  /// Claim `aud`: one text or a list of texts (RFC 7519, 4.1.3).
  private struct Audiences: Codable, Sendable {
    var names: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do { names = [try container.decode(String.self)] } catch { names = try container.decode([String].self) }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(names)
    }
  }

  private struct State: Sendable {
    var keys = SigningKeys()
    var fetched = ContinuousClock.now
  }

  private let source: JWKSSource
  private let audience: String?
  private let issuer: String?
  private let logger: Logger
  private let state = Mutex(State())
  /// Time after which the keys are fetched again.
  private static let longest = Duration.seconds(600)
  /// Minimum time between two fetches for tokens with unknown keys, so that invented key names do not flood the issuer.
  private let shortest: Duration

  /// Creates an authorizer and fetches the keys.
  ///
  /// - Parameters:
  ///   - jwks: A file, or the https URL of one. An http URL is accepted for this machine only.
  ///   - audience: The name that `aud` must contain. Without it, tokens that the same keys sign for other services are accepted, too.
  ///   - issuer: The name that `iss` must equal.
  /// - Throws: ``ServerError``.
  public convenience init(jwks: String, audience: String? = nil, issuer: String? = nil, logger: Logger) async throws(ServerError) {
    try await self.init(jwks: jwks, audience: audience, issuer: issuer, shortest: .seconds(10), logger: logger)
  }

  init(jwks: String, audience: String?, issuer: String?, shortest: Duration, logger: Logger) async throws(ServerError) {
    (source, self.audience, self.issuer, self.logger) = (try JWKSSource(place: jwks), audience, issuer, logger)
    self.shortest = shortest
    let keys = try await source.keys()
    state.withLock { $0.keys = keys }
  }

  /// Returns the identity of a token, after fetching newer keys if the known ones do not verify it.
  public func identity(of token: String) async throws(SyncProblem) -> Identity {
    await renew(after: Self.longest)
    if let identity = await verified(token) { return identity }
    // The issuer may sign with a new key by now.
    await renew(after: shortest)
    guard let identity = await verified(token) else { throw .unauthorized }
    return identity
  }

  private func verified(_ token: String) async -> Identity? {
    let keys = state.withLock { $0.keys }
    do {
      let header = try DefaultJWTParser().parse(Array(token.utf8), as: Claims.self).header
      // RFC 7515, 4.1.11: a verifier must refuse a token whose `crit` names an extension that it does not know. This server knows none. The
      // field is looked up by name, because JWTKit's `crit` is nil for a value that is no list.
      guard header.fields["crit"] == nil, keys.mayVerify(header.kid) else { return nil }
      let claims = try await keys.collection.verify(token, as: Claims.self)
      let name = claims.sub.value
      // Control characters in a name would steer the terminals that show logs.
      guard Identity.isName(name) else { return nil }
      if let issuer, claims.iss != issuer { return nil }
      if let audience, claims.aud?.names.contains(audience) != true { return nil }
      // A grant that cannot be parsed gives no right, and does not invalidate the others.
      return Identity(name, grants: claims.scopes.compactMap(Self.grant))
    } catch { return nil }
  }

  private static func grant(_ text: String) -> ScopeGrant? {
    // The last colon, because the name of a scope may contain others.
    guard let colon = text.lastIndex(of: ":"), let access = ScopeAccess(text[text.index(after: colon)...]) else { return nil }
    return ScopeGrant(String(text[..<colon]), access)
  }

  private func renew(after age: Duration) async {
    let isDue = state.withLock { state in
      guard state.fetched + age < .now else { return false }
      // Set before the fetch, so that concurrent requests start one fetch and not many.
      state.fetched = .now
      return true
    }
    guard isDue else { return }
    do throws(ServerError) {
      let keys = try await source.keys()
      state.withLock { $0.keys = keys }
      // The old keys stay in use while the issuer cannot be reached.
    } catch { logger.error("the keys were not renewed", metadata: ["error": "\(error)"]) }
  }
}
