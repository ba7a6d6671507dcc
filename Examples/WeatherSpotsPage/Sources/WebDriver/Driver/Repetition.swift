/// A question that is asked again, to programs that cannot tell when the answer has changed.
enum Repetition {
  /// Asks until there is an answer, and returns that; `nil` when the time is over.
  static func within<Value>(_ limit: Duration, _ answer: () async throws -> Value?) async throws -> Value? {
    let end = ContinuousClock.now + limit
    var pause = Duration.milliseconds(10)
    repeat {
      if let value = try await answer() { return value }
      // Frequent at first, for what is there at once, and no burden on a machine where everything is slow.
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(200))
    } while ContinuousClock.now < end
    return try await answer()
  }
}
