internal import Synchronization

/// Calls of caches whose keys are fetched in one request, although they are made one by one.
///
/// ```swift
/// let group = FetchGroup(2)
/// async let now = group.run { try await current.value(for: place) }
/// async let later = group.run { try await hourly.value(for: place) }
/// print(try await now, try await later)      // one request, if both caches share a ``GatheredSource``
/// ```
///
/// A request with a key of the group is held until each call of the group has handed its key over, or needs no request: it was answered
/// from storage, joined a fetch that was under way, failed before, or was cancelled. Keys of other callers are not held up by that.
/// ``CachedRepository/values(for:policy:maxConcurrentFetches:)`` and ``CachedRepository/prefetch(_:)`` do this by themselves.
///
/// - Important: Make as many calls of ``run(_:)`` as was promised, all at the same time: each waits for the others. Between a cache and the
///   ``GatheredSource`` there must be nothing that lets one key wait for another, such as a ``ConcurrencyLimit`` of your own. What the library's own
///   ``HostLimits`` let wait is not waited for.
public final class FetchGroup: Sendable {
  let members: FetchGroupMembers

  /// Makes a group.
  ///
  /// - Parameter count: How many calls of ``run(_:)`` will be made.
  public init(_ count: Int) { members = FetchGroupMembers(max(count, 0)) }

  // Calls that were promised and not made hold up nobody any more.
  deinit { members.finish() }

  /// Runs a call as one of the group.
  ///
  /// The first key that the call fetches belongs to the group.
  /// - Throws: What the call throws.
  public func run<Result>(_ call: () async throws -> Result) async rethrows -> Result {
    let ticket = FetchTicket(members)
    defer { ticket.endCall() }
    return try await FetchTicket.$current.withValue(ticket) { try await call() }
  }
}
