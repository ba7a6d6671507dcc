/// What an answer may be made of: what is stored, what the source says, and in which order.
///
/// Whatever the policy, callers of one key share one fetch, and what was fetched is stored.
public enum FetchPolicy: Hashable, Sendable {
  /// What is stored if it is fresh, else what the source says; if that fails, what is stored and still usable, with
  /// ``Cached/refreshError`` set.
  case cacheFirst
  /// What is stored if it is usable, at once; if it is stale it is refreshed in the background. Else what the source says.
  ///
  /// After a fetch of the key has failed, the next refresh is begun no earlier than ``RetryPolicy/cap`` later, and a second.
  case staleWhileRevalidate
  /// What the source says, if it does within the timeout; else what is stored and usable, with ``Cached/refreshError`` set.
  ///
  /// The fetch goes on after the timeout, and its result is stored. With nothing usable stored the call goes on waiting for it.
  /// Bypasses "there is none".
  case networkFirst(timeout: Duration)
  /// What the source says and nothing else: an explicit refresh, which bypasses "there is none" too.
  ///
  /// A fetch that is under way is joined.
  case networkOnly
  /// What is stored and usable, and nothing else: ``CacheError/notCached`` when there is none.
  case cacheOnly
}
