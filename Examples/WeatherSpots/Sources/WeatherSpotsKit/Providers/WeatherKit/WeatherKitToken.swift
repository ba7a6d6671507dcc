import Foundation
import Larder

/// A signed statement of who asks, JSON Web Token of the kind ES256.
struct WeatherKitToken: Sendable, Hashable {
  /// The token as it stands in the header Authorization.
  let text: String
  /// The time from which the token is refused.
  let expires: Date

  /// The lifetime of a token: half an hour, of which requests use all but the last minute.
  static let lifetime: TimeInterval = 1800
  /// A service whose clock is behind would refuse a token of its future.
  static let skew: TimeInterval = 60

  /// Signs a token.
  init(_ key: WeatherKitKey, at now: Date) throws(ProviderError) {
    let issued = Int(now.timeIntervalSince1970 - Self.skew)
    let end = Int(now.timeIntervalSince1970 + Self.lifetime)
    let input = Self.signingInput(
      header: #"{"alg":"ES256","kid":"\#(key.keyID)","id":"\#(key.teamID).\#(key.serviceID)"}"#,
      claims: #"{"iss":"\#(key.teamID)","sub":"\#(key.serviceID)","iat":\#(issued),"exp":\#(end)}"#)
    text = "\(input).\(try key.signature(of: input).base64URL)"
    expires = Date(timeIntervalSince1970: Double(end))
  }

  static func signingInput(header: String, claims: String) -> String {
    "\(Data(header.utf8).base64URL).\(Data(claims.utf8).base64URL)"
  }
}

extension WeatherKitToken: CustomStringConvertible {
  /// Until when it holds, and nothing of the token.
  var description: String { "WeatherKitToken(until \(expires.formatted(.iso8601)))" }
}

/// The token in use: signed once for all who need it, and again before it ends or after the service refused it.
///
/// A token that was refused is replaced by one more, which one request tries while all others wait for what comes of it. If that is refused
/// too, the key is: no request uses it for fifteen minutes, later runs included.
actor WeatherKitTokens {
  /// The time for which a refused key is not tried again.
  static let refusalLifetime = Duration.seconds(900)

  private let key: WeatherKitKey
  private let id: String
  private let holds: Holds
  private let now: @Sendable () -> Date
  private var token: WeatherKitToken?
  private var isTrying = false
  private var waiters: [CheckedContinuation<Void, Never>] = []
  /// The number of tokens that were signed.
  private(set) var signedCount = 0

  init(
    _ key: WeatherKitKey, at server: URL = WeatherKitProvider.server, holds: Holds? = nil, now: @escaping @Sendable () -> Date
  ) {
    self.key = key
    self.holds = holds ?? Holds(clock: DateClock(now))
    self.now = now
    id = "key \(key.keyID) \(key.teamID) \(key.serviceID) \(key.fingerprint) at \(server.hostAndPort)"
  }

  /// Returns the token to use now.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)`` while the key is taken for refused.
  func current() async throws(ProviderError) -> WeatherKitToken {
    await trialToEnd()
    try holds.check(id)
    if let token, token.expires.timeIntervalSince(now()) > 60, token.expires.timeIntervalSince(now()) <= WeatherKitToken.lifetime + 1 {
      return token
    }
    return try sign()
  }

  /// Returns a token other than one that was refused.
  ///
  /// - Returns: The token, and whether the caller is the one who tries it; then it must call ``endTrial(refusal:)``.
  /// - Throws: ``ProviderError/notAsked(_:wait:)`` when the key was refused meanwhile.
  func renewal(after refused: WeatherKitToken) async throws(ProviderError) -> (token: WeatherKitToken, isTrial: Bool) {
    await trialToEnd()
    try holds.check(id)
    if let token, token != refused { return (token, false) }
    let signed = try sign()
    isTrying = true
    return (signed, true)
  }

  /// Ends a trial.
  ///
  /// - Parameter refusal: What the service has said against the key; `nil` if it was accepted, or nothing was learnt.
  func endTrial(refusal: ProviderError?) async {
    if let refusal { await holds.hold(id, because: WeatherProblem(refusal), for: Self.refusalLifetime) }
    isTrying = false
    defer { waiters = [] }
    for waiter in waiters { waiter.resume() }
  }

  private func trialToEnd() async {
    while isTrying { await withCheckedContinuation { waiters.append($0) } }
  }

  private func sign() throws(ProviderError) -> WeatherKitToken {
    let signed = try WeatherKitToken(key, at: now())
    token = signed
    signedCount += 1
    return signed
  }
}
