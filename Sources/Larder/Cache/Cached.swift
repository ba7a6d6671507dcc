public import Foundation

/// A value with its age and where it came from, as of the moment of the answer.
public struct Cached<Value: Sendable>: Sendable {
  /// Which of its two windows a value is in; see ``FreshnessPolicy``.
  public enum State: String, Hashable, Sendable, Codable {
    /// As good as asking the source.
    case fresh
    /// Old, and still usable.
    case stale
    /// Older than it may be. Only ``CachedUpdates`` shows it, for a value that was given out before.
    case expired
  }

  /// Where the answer was found.
  public enum Origin: String, Hashable, Sendable, Codable {
    /// This process has fetched it or answered with it before.
    case memory
    /// An earlier run, or another process, has fetched it: the first answer with it here.
    case disk
    /// It was fetched for this call.
    case remote
  }

  /// The value.
  public let value: Value
  /// When it was fetched or found not modified, by this device's clock.
  public let fetchedAt: Date
  /// How old it was when this answer was made, by the monotonic clock as far as this process has seen it age.
  public let age: Duration
  /// Whether it was fresh when this answer was made.
  public let state: State
  /// Where the answer was found.
  public let origin: Origin
  /// Why this value is not newer: the source failed, or took too long, and this was served in the place of its answer.
  public let refreshError: (any Error)?

  /// Makes an answer, for previews and tests.
  public init(
    value: Value, fetchedAt: Date, age: Duration, state: State, origin: Origin, refreshError: (any Error)? = nil
  ) {
    self.value = value
    self.fetchedAt = fetchedAt
    self.age = age
    self.state = state
    self.origin = origin
    self.refreshError = refreshError
  }

  /// The same answer with another value.
  public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Cached<Other> {
    Cached<Other>(
      value: try transform(value), fetchedAt: fetchedAt, age: age, state: .init(state), origin: .init(origin), refreshError: refreshError)
  }
}

extension Cached.State {
  init<Other>(_ other: Cached<Other>.State) {
    switch other {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    }
  }
}

extension Cached.Origin {
  init<Other>(_ other: Cached<Other>.Origin) {
    switch other {
    case .memory: self = .memory
    case .disk: self = .disk
    case .remote: self = .remote
    }
  }
}
