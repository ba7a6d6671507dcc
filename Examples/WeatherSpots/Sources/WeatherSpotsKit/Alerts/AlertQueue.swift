import Foundation
public import Larder

/// The durable side of the pipeline: what was asked, what is to be told, what was told.
///
/// One pipeline works on a store at a time; see ``AlertLock``.
public struct AlertQueue: Sendable {
  private let store: Store
  /// The notices, settled ones until a day after their warning has expired.
  public let notices: LocalRepository<AlertNotice>
  /// The calls made for each cluster.
  public let checks: LocalRepository<ClusterCheck>
  /// The calls of each day.
  public let ledger: LocalRepository<CallLedger>

  /// The time for which settled notices are kept after their warning has expired, and unused checks and days, in seconds.
  static let grace: (notices: TimeInterval, checks: TimeInterval) = (86_400, 7 * 86_400)

  /// Opens the queue of a store.
  ///
  /// - Throws: What opening the collections throws.
  public init(_ store: Store) async throws(RepositoryError) {
    self.store = store
    notices = try await store.repository(AlertNotice.schema)
    checks = try await store.repository(ClusterCheck.schema)
    ledger = try await store.repository(CallLedger.schema)
  }

  /// Returns how many calls were made on the day of an instant.
  func calls(onDayOf now: Date) async throws -> Int { try await ledger.find(by: CallLedger.day(now))?.calls ?? 0 }

  /// Notes that the provider is asked for a cluster; durable before it is.
  ///
  /// - Returns: When it was asked before, for ``takeBack(_:_:begun:askedBefore:)``.
  func begin(_ cluster: SpotCluster, at now: Date) async throws -> Date {
    let day = CallLedger.day(now)
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

  /// Takes back what ``begin(_:at:)`` has noted, since the provider was not asked after all; what is known is no longer current.
  func takeBack(_ cluster: SpotCluster, _ problem: String, begun: Date, askedBefore: Date) async throws {
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

  /// Notes the answer, and queues what its watchers have not been told yet; in one commit, so that no answer is half used.
  ///
  /// - Returns: How many notices are new.
  func finish(_ cluster: SpotCluster, _ answer: AlertAnswer, at now: Date) async throws -> Int {
    var alerts: [WeatherAlert] = []
    if case .alerts(let all) = answer { alerts = all.filter { now < $0.expires } }
    let revised = alerts.map { ($0, AlertRevision($0)) }
    // Made here and not in the transaction, which others wait for.
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
      for notice in candidates where try transaction.find(by: notice.id, in: notices) == nil {
        try transaction.insert(notice, in: notices)
        count += 1
      }
      return count
    }
  }

  /// Notes that a question had no answer; what is known stays, and is no longer current.
  func fail(_ cluster: SpotCluster, _ problem: String) async throws {
    try await checks.update(cluster.id) { check in
      check.isOpen = false
      check.problem = problem
    }
  }

  /// Takes notices of a sink that are due, and notes that they are about to be handed over; durable before they are.
  func claim(_ sink: String, limit: Int, at now: Date) async throws -> [AlertDelivery] {
    let query = Query.queued(for: sink).where(#Predicate { $0.due <= now }).sorted(by: \.due).limit(limit)
    let ids = try await notices.fetch(query).map(\.id)
    guard !ids.isEmpty else { return [] }
    return try await store.transaction { [notices] transaction in
      var deliveries: [AlertDelivery] = []
      for id in ids {
        guard var notice = try transaction.find(by: id, in: notices), let alert = notice.alert, !notice.isSettled, now < notice.expires
        else { continue }
        deliveries.append(
          AlertDelivery(
            key: id, watcher: notice.watcher, place: notice.place, alert: alert, revision: notice.revision, checkedAt: notice.checkedAt,
            mayBeRepeat: notice.isOutcomeUnknown))
        notice.attempts += 1
        notice.isOutcomeUnknown = true
        try transaction.save(notice, in: notices)
      }
      return deliveries
    }
  }

  /// Notes that notices were handed over.
  func settle(_ deliveries: [AlertDelivery], at now: Date) async throws {
    try await store.transaction { [notices] transaction in
      for delivery in deliveries {
        try transaction.update(delivery.key, in: notices) { $0.settle(.delivered, at: now) }
      }
    }
  }

  /// Puts notices back that a sink has not taken.
  func postpone(_ deliveries: [AlertDelivery], until due: [NoticeKey: Date], tookNothing: Bool) async throws {
    try await store.transaction { [notices] transaction in
      for delivery in deliveries {
        try transaction.update(delivery.key, in: notices) { notice in
          notice.due = due[notice.id] ?? notice.due
          if tookNothing { notice.isOutcomeUnknown = delivery.mayBeRepeat }
        }
      }
    }
  }

  /// Settles what has expired before it could be told, and forgets what cannot be asked about again.
  ///
  /// - Returns: How many notices have lapsed.
  func tidy(at now: Date) async throws -> Int {
    let expired = try await notices.fetch(Query().where(#Predicate { !$0.isSettled && $0.expires <= now })).map(\.id)
    let forgotten = now - Self.grace.notices
    let old = try await notices.fetch(Query().where(#Predicate { $0.isSettled && $0.expires <= forgotten })).map(\.id)
    let unasked = now - Self.grace.checks
    let unwatched = try await checks.loadAll().filter { $0.askedAt < unasked && $0.askedAt > .distantPast }.map(\.id)
    let days = try await ledger.loadAll().map(\.id).filter { $0 < CallLedger.day(unasked) }
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
  /// Notes what became of it, and drops what was said, which is not needed any more; that it was said is kept.
  mutating func settle(_ state: State, at now: Date) {
    self.state = state
    settledAt = now
    alert = nil
    isOutcomeUnknown = false
  }
}
