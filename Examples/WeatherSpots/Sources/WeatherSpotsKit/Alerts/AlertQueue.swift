import Foundation
public import Larder

/// The durable queue of the alert pipeline: the notices, the calls made for each cluster, and the calls of each day.
///
/// Only one pipeline may use a store at a time. Hold a lock on a file beside the store while it runs, as `alerts watch` does.
public struct AlertQueue: Sendable {
  private let store: Store
  /// Notices to deliver, and settled ones until a day after their warning has expired.
  public let notices: LocalRepository<AlertNotice>
  /// Calls and last known warnings of each cluster.
  public let checks: LocalRepository<ClusterCheck>
  /// Number of calls of each day.
  public let ledger: LocalRepository<CallLedger>

  /// Seconds for which settled notices are kept after their warning has expired, and unused checks and days after their last call.
  static let grace: (notices: TimeInterval, checks: TimeInterval) = (86_400, 7 * 86_400)

  /// Opens the queue of a store.
  ///
  /// - Throws: The errors of opening the collections.
  public init(_ store: Store) async throws(RepositoryError) {
    self.store = store
    notices = try await store.repository(AlertNotice.schema)
    checks = try await store.repository(ClusterCheck.schema)
    ledger = try await store.repository(CallLedger.schema)
  }

  /// Returns the number of calls on the UTC day of an instant.
  func calls(onDayOf now: Date) async throws -> Int { try await ledger.find(by: CallLedger.day(now))?.calls ?? 0 }

  /// Records a call for a cluster, durably before the request is sent.
  ///
  /// - Returns: Time of the previous call, to pass to ``takeBack(_:_:begun:askedBefore:)``.
  func begin(_ cluster: SpotCluster, at now: Date) async throws -> Date {
    let day = CallLedger.day(now)
    // One commit for both counts, so that a crash cannot count a call for the cluster and not for the day.
    return try await store.transaction { [checks, ledger] transaction in
      var check = try transaction.find(by: cluster.id, in: checks) ?? ClusterCheck(id: cluster.id)
      let before = check.askedAt
      check.watchers = cluster.watchers.count
      check.calls += 1
      check.askedAt = now
      check.isOpen = true
      try transaction.save(check, in: checks)
      var entry = try transaction.find(by: day, in: ledger) ?? CallLedger(id: day, calls: 0, unclustered: 0)
      entry.calls += 1
      entry.unclustered += cluster.watchers.count
      try transaction.save(entry, in: ledger)
      return before
    }
  }

  /// Undoes ``begin(_:at:)`` after a call that sent no request, and stores the problem.
  ///
  /// The last known warnings stay but no longer count as current.
  func takeBack(_ cluster: SpotCluster, _ problem: String, begun: Date, askedBefore: Date) async throws {
    // The day of the beginning: the call may end after midnight.
    let day = CallLedger.day(begun)
    try await store.transaction { [checks, ledger] transaction in
      if var check = try transaction.find(by: cluster.id, in: checks) {
        check.calls = max(check.calls - 1, 0)
        check.askedAt = askedBefore
        check.isOpen = false
        check.problem = problem
        try transaction.save(check, in: checks)
      }
      if var entry = try transaction.find(by: day, in: ledger) {
        entry.calls = max(entry.calls - 1, 0)
        entry.unclustered = max(entry.unclustered - cluster.watchers.count, 0)
        try transaction.save(entry, in: ledger)
      }
    }
  }

  /// Stores an answer and queues the notices that are new, in one commit.
  ///
  /// A crash cannot leave an answer half used.
  ///
  /// - Returns: Number of new notices.
  func finish(_ cluster: SpotCluster, _ answer: AlertAnswer, at now: Date) async throws -> Int {
    var alerts: [WeatherAlert] = []
    if case .alerts(let all) = answer { alerts = all.filter { now < $0.expires } }
    let revised = alerts.map { ($0, AlertRevision($0)) }
    // The digests are computed outside the transaction, which blocks other writers.
    let candidates = revised.flatMap { alert, revision in
      cluster.watchers.map { AlertNotice(alert, revision, for: $0, checkedAt: now) }
    }
    return try await store.transaction { [checks, notices, alerts] transaction in
      var check = try transaction.find(by: cluster.id, in: checks) ?? ClusterCheck(id: cluster.id)
      check.isOpen = false
      check.checkedAt = now
      check.alerts = alerts
      check.problem = nil
      if case .notOffered = answer { check.isOffered = false } else { check.isOffered = true }
      try transaction.save(check, in: checks)
      var count = 0
      // A settled notice has the same key, so that a revision that was delivered is not queued again.
      for notice in candidates where try transaction.find(by: notice.id, in: notices) == nil {
        try transaction.insert(notice, in: notices)
        count += 1
      }
      return count
    }
  }

  /// Records that a call failed.
  ///
  /// The last known warnings stay but no longer count as current.
  func fail(_ cluster: SpotCluster, _ problem: String) async throws {
    try await checks.update(cluster.id) { check in
      check.isOpen = false
      check.problem = problem
    }
  }

  /// Claims due notices of a sink and records the attempt, durably before the delivery.
  func claim(_ sink: String, limit: Int, at now: Date) async throws -> [AlertDelivery] {
    let query = Query.queued(for: sink).where(#Predicate { $0.due <= now }).sorted(by: \.due).limit(limit)
    let ids = try await notices.fetch(query).map(\.id)
    // No empty commit: most rounds find nothing due.
    guard !ids.isEmpty else { return [] }
    return try await store.transaction { [notices] transaction in
      var deliveries: [AlertDelivery] = []
      for id in ids {
        // Read again, since the query ran before the transaction. A notice that expired after `tidy` is skipped.
        guard var notice = try transaction.find(by: id, in: notices), let alert = notice.alert, !notice.isSettled, now < notice.expires
        else { continue }
        deliveries.append(
          AlertDelivery(
            key: id, watcher: notice.watcher, place: notice.place, alert: alert, revision: notice.revision, checkedAt: notice.checkedAt,
            mayBeRepeat: notice.isOutcomeUnknown))
        notice.attempts += 1
        // After `mayBeRepeat` was read: the mark is for the next attempt, if this one ends in a crash.
        notice.isOutcomeUnknown = true
        try transaction.save(notice, in: notices)
      }
      return deliveries
    }
  }

  /// Records that notices were delivered.
  func settle(_ deliveries: [AlertDelivery], at now: Date) async throws {
    try await store.transaction { [notices] transaction in
      for delivery in deliveries {
        try transaction.update(delivery.key, in: notices) { $0.settle(.delivered, at: now) }
      }
    }
  }

  /// Reschedules notices that a sink did not accept.
  func postpone(_ deliveries: [AlertDelivery], until due: [NoticeKey: Date], tookNothing: Bool) async throws {
    try await store.transaction { [notices] transaction in
      for delivery in deliveries {
        try transaction.update(delivery.key, in: notices) { notice in
          notice.due = due[notice.id] ?? notice.due
          // Nothing was sent, so the mark from before the attempt is restored. Otherwise the notice may have arrived.
          if tookNothing { notice.isOutcomeUnknown = delivery.mayBeRepeat }
        }
      }
    }
  }

  /// Settles notices whose warning has expired, and deletes old notices, checks and days.
  ///
  /// - Returns: Number of notices that lapsed.
  func tidy(at now: Date) async throws -> Int {
    let expired = try await notices.fetch(Query().where(#Predicate { !$0.isSettled && $0.expires <= now })).map(\.id)
    let forgotten = now - Self.grace.notices
    let old = try await notices.fetch(Query().where(#Predicate { $0.isSettled && $0.expires <= forgotten })).map(\.id)
    let unasked = now - Self.grace.checks
    // `.distantPast` means that no call was ever sent: the record keeps the problem of the latest attempt.
    let unwatched = try await checks.loadAll().filter { $0.askedAt < unasked && $0.askedAt > .distantPast }.map(\.id)
    let days = try await ledger.loadAll().map(\.id).filter { $0 < CallLedger.day(unasked) }
    // No empty commit: most rounds find nothing to delete.
    guard !expired.isEmpty || !old.isEmpty || !unwatched.isEmpty || !days.isEmpty else { return 0 }
    return try await store.transaction { [notices, checks, ledger] transaction in
      for id in expired { try transaction.update(id, in: notices) { $0.settle(.lapsed, at: now) } }
      for id in old { try transaction.delete(id, in: notices) }
      for id in unwatched { try transaction.delete(id, in: checks) }
      for id in days { try transaction.delete(id, in: ledger) }
      return expired.count
    }
  }
}

extension AlertNotice {
  /// Settles the notice and drops its warning.
  ///
  /// The key stays, so that the notice is not queued again.
  mutating func settle(_ state: State, at now: Date) {
    self.state = state
    settledAt = now
    alert = nil
    isOutcomeUnknown = false
  }
}
