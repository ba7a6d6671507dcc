/// The rule by which one call chooses between the stored value and the source.
///
/// ```swift
/// let now = try await cache.value(for: spot, policy: .staleWhileRevalidate)   // a view that appears
/// let new = try await cache.value(for: spot, policy: .networkOnly)            // pull to refresh
/// ```
///
/// ``cacheFirst`` is the default fetch policy. With every policy that fetches, concurrent callers of one key share one fetch, and the
/// fetched value is stored.
///
/// ## Cost
///
/// An answer from storage is read from memory, on the caller's actor. An answer of the source costs a request with its retries, and a
/// commit before the answer is returned. While a usable value is stored, ``staleWhileRevalidate`` does not wait for the source, and
/// ``networkFirst(timeout:)`` waits no longer than its timeout.
///
/// ## Topics
///
/// ### Preferring the stored value
/// - ``cacheFirst``
/// - ``staleWhileRevalidate``
///
/// ### Preferring the source
/// - ``networkFirst(timeout:)``
///
/// ### One of them alone
/// - ``networkOnly``
/// - ``cacheOnly``
public enum FetchPolicy: Hashable, Sendable {
  /// Returns a fresh stored value, or else fetches the value from the source.
  ///
  /// If the source fails, `cacheFirst` returns the stored value while it is usable, with ``Cached/refreshError`` set.
  case cacheFirst
  /// Returns a usable stored value at once, and refreshes it in the background if it is stale.
  ///
  /// Without a usable stored value, `staleWhileRevalidate` waits for the source's value.
  ///
  /// After a failed fetch of the key, the next background refresh begins no earlier than after the time ``RetryPolicy/cap``, and after at
  /// least one second.
  case staleWhileRevalidate
  /// Returns the source's value if it comes within the timeout, or else the stored value while it is usable.
  ///
  /// A stored value that `networkFirst` returns has ``Cached/refreshError`` set. The fetch continues after the timeout, and its result is
  /// stored. Without a usable stored value, the call waits for the fetch without a timeout. `networkFirst` fetches even while a stored
  /// absence (``Fetched/absent(reason:lifetime:)``) still holds.
  case networkFirst(timeout: Duration)
  /// Returns the source's value, and never a stored value.
  ///
  /// Use `networkOnly` for a refresh that the user asks for.
  ///
  /// A call with `networkOnly` joins a running fetch of the key. `networkOnly` fetches even while a stored absence
  /// (``Fetched/absent(reason:lifetime:)``) still holds.
  case networkOnly
  /// Returns the stored value while it is usable, and never fetches.
  ///
  /// With `cacheOnly`, a call throws ``CacheError/notCached`` if no usable value is stored, or ``CacheError/absent(reason:since:)`` while a
  /// stored absence (the source's answer that the key has no value) holds.
  case cacheOnly
}
