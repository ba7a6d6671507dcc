import Foundation
import Larder

/// JSON Web Token that authenticates requests to WeatherKit, signed with ES256.
struct WeatherKitToken: Sendable, Hashable {
  /// Text of the token for the header Authorization.
  let text: String
  /// Time from which the service refuses the token.
  let expires: Date

  /// Lifetime of a token in seconds, half an hour.
  ///
  /// Requests do not use the last minute of it.
  static let lifetime: TimeInterval = 1800
  /// Seconds by which the issue time is put back, since a server with a slow clock refuses tokens from its future.
  static let skew: TimeInterval = 60

  /// Creates a token, signed with a key.
  init(_ key: WeatherKitKey, at now: Date) throws(ProviderError) {
    let issued = Int(now.timeIntervalSince1970 - Self.skew)
    let end = Int(now.timeIntervalSince1970 + Self.lifetime)
    // Apple's documentation requires the header parameter `id` (team and service), which RFC 7515 does not define.
    let input = Self.signingInput(
      header: #"{"alg":"ES256","kid":"\#(key.keyID)","id":"\#(key.teamID).\#(key.serviceID)"}"#,
      claims: #"{"iss":"\#(key.teamID)","sub":"\#(key.serviceID)","iat":\#(issued),"exp":\#(end)}"#)
    text = "\(input).\(try key.signature(of: input).base64URL)"
    expires = Date(timeIntervalSince1970: Double(end))
  }

  static func signingInput(header: String, claims: String) -> String { "\(Data(header.utf8).base64URL).\(Data(claims.utf8).base64URL)" }
}

extension WeatherKitToken: CustomStringConvertible {
  /// Expiry time of the token, without any part of its text.
  var description: String { "WeatherKitToken(until \(expires.formatted(.iso8601)))" }
}

/// Token cache of a provider, which signs one token for all requests and a new one before the old expires or after the service refused it.
///
/// The trial of a new token after a refusal is one request, and all others wait for its outcome. If the service refuses the new token
/// too, the key is on hold: no request uses it for fifteen minutes, in later runs neither.
actor WeatherKitTokens {
  /// Duration of the hold on a refused key.
  static let refusalLifetime = Duration.seconds(900)

  private let key: WeatherKitKey
  private let id: String
  private let holds: Holds
  private let now: @Sendable () -> Date
  private var token: WeatherKitToken?
  private var isTrying = false
  private var waiters: [CheckedContinuation<Void, Never>] = []
  /// Number of tokens signed so far.
  private(set) var signedCount = 0

  init(
    _ key: WeatherKitKey, at server: URL = WeatherKitProvider.server, holds: Holds? = nil, now: @escaping @Sendable () -> Date
  ) {
    self.key = key
    self.holds = holds ?? Holds(clock: DateClock(now))
    self.now = now
    // With the fingerprint: a new key file under the same ids must not inherit the hold of the old one.
    id = "key \(key.keyID) \(key.teamID) \(key.serviceID) \(key.fingerprint) at \(server.hostAndPort)"
  }

  /// Returns the token for a new request.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)`` while the key is on hold.
  func current() async throws(ProviderError) -> WeatherKitToken {
    await trialToEnd()
    try holds.check(id)
    // More time left than a lifetime means that the clock was set back: the service may refuse the token as not yet valid.
    // The last minute of a token stays unused, because the token must still be valid when the request reaches the service.
    if let token, token.expires.timeIntervalSince(now()) > 60, token.expires.timeIntervalSince(now()) <= WeatherKitToken.lifetime + 1 {
      return token
    }
    return try sign()
  }

  /// Returns a token other than a refused one.
  ///
  /// - Returns: The token, and whether the caller's request is its trial. If so, the caller must call ``endTrial(refusal:)``.
  /// - Throws: ``ProviderError/notAsked(_:wait:)`` if the key was put on hold meanwhile.
  func renewal(after refused: WeatherKitToken) async throws(ProviderError) -> (token: WeatherKitToken, isTrial: Bool) {
    await trialToEnd()
    try holds.check(id)
    // Another request renewed it already. A second trial would count one refusal twice.
    if let token, token != refused { return (token, false) }
    let signed = try sign()
    // After signing: if that throws, no trial runs and nobody may wait for one.
    isTrying = true
    return (signed, true)
  }

  /// Ends the trial of a new token and resumes the waiting requests.
  ///
  /// - Parameter refusal: Error with which the service refused the token, or `nil` if it did not refuse it or sent no answer.
  func endTrial(refusal: ProviderError?) async {
    // Before the others resume: they check the hold next, and without it would try the refused key again.
    if let refusal { await holds.hold(id, because: WeatherProblem(refusal), for: Self.refusalLifetime) }
    isTrying = false
    defer { waiters = [] }
    for waiter in waiters { waiter.resume() }
  }

  private func trialToEnd() async {
    // A loop: another trial may begin before a resumed request runs.
    while isTrying { await withCheckedContinuation { waiters.append($0) } }
  }

  private func sign() throws(ProviderError) -> WeatherKitToken {
    let signed = try WeatherKitToken(key, at: now())
    token = signed
    signedCount += 1
    return signed
  }
}
