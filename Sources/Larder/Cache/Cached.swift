public import Foundation

/// A value with its age and origin, as of the moment of the answer.
///
/// ```swift
/// let forecast = try await cache.value(for: spot)
/// if forecast.state == .stale { print("\(forecast.age.components.seconds / 60) minutes old") }
/// if let error = forecast.refreshError { print("not newer, because: \(error)") }
/// ```
///
/// The age and the state of an answer do not change. For the current age and state, ask the cache again, or read the sequence
/// ``CachedRepository/updates(for:)``.
///
/// ## Cost
///
/// A `Cached` takes as much memory as the stored value and a few machine words. The value stays in memory for as long as you keep the
/// answer.
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
  /// Windows of time of a ``FreshnessPolicy`` in which a value can be.
  public enum State: String, Hashable, Sendable, Codable {
    /// The value is in its fresh window and counts as current.
    case fresh
    /// The fresh window has ended, and the value may be used until its usable window ends.
    case stale
    /// The usable window has ended.
    ///
    /// Only ``CachedUpdates`` returns an expired value, to a reader that has received a value of the key before.
    case expired
  }

  /// Places from which an answer can come.
  public enum Origin: String, Hashable, Sendable, Codable {
    /// This process has fetched the value, or has returned it before.
    case memory
    /// An earlier run, another process or another cache has fetched the value, and this cache returns it for the first time.
    case disk
    /// The source has returned the value for this call.
    case remote
  }

  /// The value that the source returned for the key.
  public let value: Value
  /// Date when the value was fetched or confirmed as not modified, by this device's clock.
  public let fetchedAt: Date
  /// Age of the value at the time of this answer.
  ///
  /// The monotonic clock measures the part of the age that passes in this process. The wall clock gives the part of the age that had passed
  /// before this process received the value.
  public let age: Duration
  /// Window of the ``FreshnessPolicy`` that the value was in at the time of this answer.
  public let state: State
  /// Place from which this answer comes.
  public let origin: Origin
  /// The error that kept the call from returning a newer value, or `nil`.
  ///
  /// The error is that of the source, or ``CacheError/timedOut(_:)`` if the source took longer than the timeout. If ``HostLimits`` refused
  /// the request, the error is ``CacheError/circuitOpen(until:)`` or ``CacheError/quotaExceeded(until:)``.
  public let refreshError: (any Error)?

  /// Makes an answer without a cache, for previews and tests.
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
  /// Converts the state of an answer whose value has another type.
  init<Other>(_ other: Cached<Other>.State) {
    switch other {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    }
  }
}

extension Cached.Origin {
  /// Converts the origin of an answer whose value has another type.
  init<Other>(_ other: Cached<Other>.Origin) {
    switch other {
    case .memory: self = .memory
    case .disk: self = .disk
    case .remote: self = .remote
    }
  }
}
