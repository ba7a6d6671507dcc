import Testing

extension Trait where Self == ConditionTrait {
  /// For tests of signed requests.
  ///
  /// They run with the package's trait: `swift test --traits WeatherKit`.
  static var needsSigning: Self { .enabled("built without the trait WeatherKit") { Signing.isBuilt } }
}

/// Whether the built program signs requests to WeatherKit.
enum Signing {
  #if canImport(CryptoKit) || WeatherKit
    static let isBuilt = true
  #else
    static let isBuilt = false
  #endif
}
