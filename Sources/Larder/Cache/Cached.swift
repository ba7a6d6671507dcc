public import Foundation

/// An answer of a cache: a value with its age and origin at the moment of the answer.
///
/// ```swift
/// let forecast = try await cache.value(for: spot)
/// if forecast.state == .stale { print("\(forecast.age.components.seconds / 60) minutes old") }
/// if let error = forecast.refreshError { print("not newer, because: \(error)") }
/// ```
///
/// The age and the state of an answer do not change later. For the current age and state, call the cache again, or read the sequence
/// ``CachedRepository/updates(for:)``.
///
/// ## Cost
///
/// A `Cached` takes as much memory as the stored value and a few machine words. The value stays in memory for as long as you keep the
/// `Cached`.
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
  /// The time windows of a ``FreshnessPolicy`` that a value passes through: fresh, stale, expired.
  public enum State: String, Hashable, Sendable, Codable {
    /// The value is in its fresh window, so it counts as current.
    case fresh
    /// The fresh window of the value has ended, and the value may be used until its usable window ends.
    case stale
    /// The usable window of the value has ended.
    ///
    /// Only ``CachedUpdates`` returns a stored value that has expired, and only to a reader that has received a value of the key before.
    case expired
  }

  /// The places from which an answer of a cache can come.
  public enum Origin: String, Hashable, Sendable, Codable {
    /// The cache has the value in memory, because this process has fetched the value or has returned it before.
    case memory
    /// An earlier run, another process or another cache has fetched the value, and the cache returns it for the first time.
    case disk
    /// The source has returned the value during the call.
    case remote
  }

  /// The value that the source returned for the key.
  public let value: Value
  /// Date when the source has returned the value or confirmed it as not modified, by this device's wall clock.
  public let fetchedAt: Date
  /// Age of the value at the time of the answer.
  ///
  /// The monotonic clock measures the part of the value's age that passes in this process. The wall clock gives the part of the value's age
  /// that had passed before this process received the value.
  public let age: Duration
  /// Window of the ``FreshnessPolicy`` in which the value was at the time of the answer.
  public let state: State
  /// Place from which the answer comes: memory, disk or the source.
  public let origin: Origin
  /// The error that prevented the call from returning a newer value, or `nil`.
  ///
  /// `refreshError` is the error of the source, or ``CacheError/timedOut(_:)`` if the source took longer than the timeout. If
  /// ``HostLimits`` refused the request, `refreshError` is ``CacheError/circuitOpen(until:)`` or ``CacheError/quotaExceeded(until:)``.
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

  /// Returns an answer with the transformed value, and with the same age, state and origin.
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
