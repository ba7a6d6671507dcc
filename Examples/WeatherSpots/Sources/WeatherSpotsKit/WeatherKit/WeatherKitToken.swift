import Foundation

/// A signed statement of who asks, JSON Web Token of the kind ES256.
struct WeatherKitToken: Sendable, Hashable {
  /// The token as it stands in the header Authorization.
  let text: String
  /// When it is not accepted any more.
  let expires: Date

  /// How long a token holds: the half of an hour, of which requests use all but the last minute.
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
    text = "\(input).\(Self.base64URL(try key.signature(of: input)))"
    expires = Date(timeIntervalSince1970: Double(end))
  }

  static func signingInput(header: String, claims: String) -> String {
    "\(base64URL(Data(header.utf8))).\(base64URL(Data(claims.utf8)))"
  }

  /// Base 64 with the alphabet for URLs and without padding.
  static func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}

extension WeatherKitToken: CustomStringConvertible {
  /// Until when it holds, and nothing of the token.
  var description: String { "WeatherKitToken(until \(expires.formatted(.iso8601)))" }
}

/// The token in use: signed once for all who need it, and again before it ends or after the service refused it.
actor WeatherKitTokens {
  private let key: WeatherKitKey
  private let now: @Sendable () -> Date
  private var token: WeatherKitToken?
  /// How many were signed.
  private(set) var signedCount = 0

  init(_ key: WeatherKitKey, now: @escaping @Sendable () -> Date) {
    self.key = key
    self.now = now
  }

  // Neither method suspends, so that those who come together get one token.

  /// The token to use now.
  func current() throws(ProviderError) -> WeatherKitToken {
    if let token, token.expires.timeIntervalSince(now()) > 60, token.expires.timeIntervalSince(now()) <= WeatherKitToken.lifetime + 1 {
      return token
    }
    return try sign()
  }

  /// A token other than one that was refused.
  func renewed(after refused: WeatherKitToken) throws(ProviderError) -> WeatherKitToken {
    if let token, token != refused { return token }
    return try sign()
  }

  private func sign() throws(ProviderError) -> WeatherKitToken {
    let signed = try WeatherKitToken(key, at: now())
    token = signed
    signedCount += 1
    return signed
  }
}
