public import Foundation

/// A value with its age and origin, as of the moment of the answer.
///
/// ```swift
/// let forecast = try await cache.value(for: spot)
/// if forecast.state == .stale { print("\(forecast.age.components.seconds / 60) minutes old") }
/// if let error = forecast.refreshError { print("not newer, because: \(error)") }
/// ```
///
/// The age and the state of an answer do not change. Ask again for the current ones, or follow ``CachedRepository/updates(for:)``.
///
/// ## Cost
///
/// An answer is a few words around the stored value. The value stays in memory for as long as you keep the answer.
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
  /// Windows of a ``FreshnessPolicy`` that a value can be in.
  public enum State: String, Hashable, Sendable, Codable {
    /// As good as a new answer of the source.
    case fresh
    /// Old, and still usable.
    case stale
    /// Too old to use.
    ///
    /// Only ``CachedUpdates`` returns such a value, to a reader that received it before.
    case expired
  }

  /// Places from which an answer can come.
  public enum Origin: String, Hashable, Sendable, Codable {
    /// Fetched or returned by this process before.
    case memory
    /// Fetched by an earlier run or another process, and returned by this cache for the first time.
    case disk
    /// Fetched for this call.
    case remote
  }

  /// The value.
  public let value: Value
  /// Date when the value was fetched or confirmed as not modified, by this device's clock.
  public let fetchedAt: Date
  /// Age at the time of this answer.
  ///
  /// The monotonic clock has measured the part of it that this process has seen.
  public let age: Duration
  /// State at the time of this answer.
  public let state: State
  /// Place from which this answer comes.
  public let origin: Origin
  /// The reason why the value is not newer, or `nil`.
  ///
  /// It is the failure of the source, ``CacheError/timedOut(_:)`` if it took too long, or ``CacheError/circuitOpen(until:)`` or
  /// ``CacheError/quotaExceeded(until:)`` from the limits of its host.
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

  /// Returns the same answer with a transformed value.
  public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Cached<Other> {
    Cached<Other>(
      value: try transform(value), fetchedAt: fetchedAt, age: age, state: .init(state), origin: .init(origin), refreshError: refreshError)
  }
}

extension Cached.State {
  /// Converts the state of an answer with another type of value.
  init<Other>(_ other: Cached<Other>.State) {
    switch other {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    }
  }
}

extension Cached.Origin {
  /// Converts the origin of an answer with another type of value.
  init<Other>(_ other: Cached<Other>.Origin) {
    switch other {
    case .memory: self = .memory
    case .disk: self = .disk
    case .remote: self = .remote
    }
  }
}
