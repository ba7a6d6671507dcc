public import Foundation

/// A value with its age and its origin, as of the moment of the answer.
///
/// ```swift
/// let forecast = try await cache.value(for: spot)
/// if forecast.state == .stale { print("\(forecast.age.components.seconds / 60) minutes old") }
/// if let error = forecast.refreshError { print("not newer, because: \(error)") }
/// ```
///
/// The age and the state do not change in the answer: ask again, or follow ``CachedRepository/updates(for:)``.
///
/// ## Cost
///
/// An answer is a value of a few words around the stored one, which it keeps in memory for as long as you keep the answer.
///
/// ## Topics
///
/// ### The value and its age
/// - ``value``
/// - ``fetchedAt``
/// - ``age``
/// - ``state-swift.property``
/// - ``State-swift.enum``
///
/// ### Where it comes from
/// - ``origin-swift.property``
/// - ``Origin-swift.enum``
/// - ``refreshError``
///
/// ### Making answers
/// - ``init(value:fetchedAt:age:state:origin:refreshError:)``
/// - ``map(_:)``
public struct Cached<Value: Sendable>: Sendable {
  /// The window of its ``FreshnessPolicy`` that a value is in.
  public enum State: String, Hashable, Sendable, Codable {
    /// As good as asking the source.
    case fresh
    /// Old, and still usable.
    case stale
    /// Older than it may be. Only ``CachedUpdates`` shows it, for a value that was given out before.
    case expired
  }

  /// The place where an answer was found.
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
  /// The date when it was fetched or found not modified, by this device's clock.
  public let fetchedAt: Date
  /// Its age when this answer was made, by the monotonic clock as far as this process has seen it age.
  public let age: Duration
  /// Its state when this answer was made.
  public let state: State
  /// The place where an answer was found.
  public let origin: Origin
  /// The reason why this value is not newer: the source failed or took too long, and this was served instead; else `nil`.
  public let refreshError: (any Error)?

  /// Makes an answer, for previews and tests.
  @inline(__always) public init(
    value: Value, fetchedAt: Date, age: Duration, state: State, origin: Origin, refreshError: (any Error)? = nil
  ) {
    self.value = value
    self.fetchedAt = fetchedAt
    self.age = age
    self.state = state
    self.origin = origin
    self.refreshError = refreshError
  }

  /// Returns the same answer with another value.
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
