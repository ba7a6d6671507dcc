/// All scenarios.
enum Scenarios {
  static let all =
    Reading.scenarios + Writing.scenarios + Observing.scenarios + Caching.scenarios + Waiting.scenarios + Blobs.scenarios
    + Opening.scenarios + Tending.scenarios
}
