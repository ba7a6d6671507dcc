/// A choice between the stored value and the source, for one call.
///
/// ```swift
/// let now = try await cache.value(for: spot, policy: .staleWhileRevalidate)   // a view that appears
/// let new = try await cache.value(for: spot, policy: .networkOnly)            // pull to refresh
/// ```
///
/// Whatever the policy, callers of one key share one fetch, and what was fetched is stored. ``cacheFirst`` is the default.
///
/// ## Cost
///
/// An answer from storage is read from memory, on the caller's actor. An answer of the source costs a request, with its retries, and a
/// commit before it is returned. While something usable is stored, ``staleWhileRevalidate`` does not wait for the source, and
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
  /// The stored value if it is fresh, else the source's; if that fails, the stored value while it is usable, with
  /// ``Cached/refreshError`` set.
  case cacheFirst
  /// The stored value if it is usable, at once; a stale one is refreshed in the background. Else the source's.
  ///
  /// After a fetch of the key has failed, the next refresh is begun no earlier than ``RetryPolicy/cap`` later, or a second if
  /// that is longer.
  case staleWhileRevalidate
  /// The source's value, if it comes within the timeout; else the stored one while it is usable, with ``Cached/refreshError`` set.
  ///
  /// The fetch goes on after the timeout, and its result is stored. With nothing usable stored the call goes on waiting for it.
  /// Bypasses "there is none".
  case networkFirst(timeout: Duration)
  /// The source's value and nothing else: an explicit refresh, which bypasses "there is none" too.
  ///
  /// A fetch that is under way is joined.
  case networkOnly
  /// The stored value while it is usable, and nothing else: ``CacheError/notCached`` when there is none.
  case cacheOnly
}
