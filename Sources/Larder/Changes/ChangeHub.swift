internal import Dispatch
internal import Synchronization

/// An observer of commits, which is called on a queue of the store and must return at once.
protocol ChangeObserver: AnyObject, Sendable {
  /// Receives the changes of one published state in the order of their commits, with the newest commit of the store.
  ///
  /// The observer has already seen changes at or below the commit that it began from. There are no changes if the commits were of other
  /// collections.
  func receive(_ changes: [RecordChange], commit: Revision)
  /// Ends the observation, because the store was closed and no more changes come.
  func finish()
}

/// The hub that announces each commit to the observers of its collections.
///
/// An observer that registers first and then reads the published state misses nothing. Observers are held weakly.
final class ChangeHub: Sendable {
  private struct Seat: Sendable {
    weak let observer: (any ChangeObserver)?
  }

  private struct Seats: Sendable {
    var byCollection: [Int: [Seat]] = [:]
    /// Deferred observers, which are called on ``queue`` unless they are few.
    var later: [Int: [Seat]] = [:]
    var isFinished = false
    /// Announcements that the deferred observers have not received yet.
    var waiting: [Announcement] = []
    /// Number of changes in ``waiting``.
    var waitingCount = 0
    /// Whether a delivery is scheduled or running, which will also take announcements that are added now.
    var isDelivering = false
  }

  /// The changes of one published state.
  private struct Announcement: Sendable {
    let changes: [RecordChange]
    let commit: Revision
  }

  private let seats = Mutex(Seats())
  /// Newest commit that was announced to all observers that are not deferred.
  let progress = ChangeProgress()
  private let deletionLog: Mutex<DeletionLog>
  /// Queue for deferred observers, which together may take longer over a change than a commit should wait.
  private let queue = DispatchQueue(label: "larder.observers", qos: .userInitiated)
  /// Number of waiting changes above which the executor blocks until they are delivered, so that memory stays bounded.
  static let mostWaiting = 4_096
  /// Number of changes, and of observers times changes, up to which deferred observers are called at once.
  ///
  /// Waking the queue would take longer.
  static let few = (changes: 8, tests: 128)
  /// Time for which deferred observers are called on the executor, before the queue calls the rest.
  static let patience = Duration.microseconds(50)

  /// Makes a hub with a log of the deletions of earlier runs.
  init(_ deletions: DeletionLog) { deletionLog = Mutex(deletions) }

  // A store that is dropped without closing ends its readers too.
  deinit { finish() }

  /// Adds an observer of a collection, or ends it at once if the store was closed.
  ///
  /// - Parameter isLater: Whether the observer is deferred. Deferred observers that are more than ``few``, or take long, are called on
  ///   ``queue``, so that no commit waits for all of them.
  func register(_ observer: any ChangeObserver, for collection: Int, isLater: Bool = false) {
    let isFinished = seats.withLock { seats in
      if isLater {
        seats.later[collection, default: []].removeAll { $0.observer == nil }
        seats.later[collection, default: []].append(Seat(observer: observer))
      } else {
        // The seats of dropped observers would make each announcement longer.
        seats.byCollection[collection, default: []].removeAll { $0.observer == nil }
        seats.byCollection[collection, default: []].append(Seat(observer: observer))
      }
      return seats.isFinished
    }
    // The end was announced before the observer came, so nothing else would end it.
    if isFinished { observer.finish() }
  }

  /// Whether a collection has an observer.
  func isObserved(_ collection: Int) -> Bool {
    seats.withLock { seats in
      [seats.byCollection, seats.later].contains { $0[collection]?.contains { $0.observer != nil } ?? false }
    }
  }

  /// Notes the deletions of durable commits before these are published.
  ///
  /// So a reader that first reads a published state and then asks here gets every deletion that led to it. On the executor only.
  func note(_ deletions: [DeletionLog.Deletion]) { deletionLog.withLock { $0.append(deletions) } }

  /// Returns the keys of the known deletions in a collection.
  func knownDeletions(in collection: Int) -> [RecordKey] {
    deletionLog.withLock { Array($0.deletions(in: collection, after: $0.horizon, upTo: Revision(.max)).keys) }
  }

  /// Forgets the deletions up to a commit.
  func forgetDeletions(upTo commit: Revision) { deletionLog.withLock { $0.forget(upTo: commit) } }

  /// Returns the deletions in a collection after one commit and up to another, or `nil` if some of them may have been forgotten.
  ///
  /// The state of the second commit must have been published.
  func deletions(
    in collection: Int, after revision: Revision, upTo commit: Revision
  ) -> (deletions: [RecordKey: Revision]?, horizon: Revision) {
    deletionLog.withLock { log in
      // An incomplete list would leave deleted records in the reader's copy.
      guard revision >= log.horizon else { return (nil, log.horizon) }
      return (log.deletions(in: collection, after: revision, upTo: commit), log.horizon)
    }
  }

  /// Announces published changes to the observers of each collection.
  ///
  /// Deferred observers may receive them later. Deletions among the changes were noted before, by ``note(_:)``.
  ///
  /// On the executor only.
  func announce(_ changes: [RecordChange], commit: Revision) {
    let (observers, delivery) = seats.withLock { seats in
      (seats.byCollection.mapValues { $0.compactMap(\.observer) }, Self.add(Announcement(changes: changes, commit: commit), to: &seats))
    }
    // Observers are called without the lock, which tasks that register others wait for.
    for (collection, observers) in observers where !observers.isEmpty {
      let own = changes.filter { $0.collection == collection }
      for observer in observers { observer.receive(own, commit: commit) }
    }
    // Only now, so that a reader of the progress finds the changes with every observer that is not deferred.
    progress.advance(to: commit)
    switch delivery {
    case .none: break
    case .immediate(let later): deliverAtOnce(Announcement(changes: changes, commit: commit), to: later)
    case .scheduled: queue.async { self.deliver() }
    // Blocks the next commit until the observers have caught up, which bounds the waiting changes.
    case .awaited: queue.sync { self.deliver() }
    }
  }

  /// Ends all observers, because the store was closed.
  ///
  /// Deferred observers finish after their pending announcements.
  func finish() {
    let (observers, later, waiting) = seats.withLock { seats in
      seats.isFinished = true
      defer { (seats.byCollection, seats.later, seats.waiting, seats.waitingCount) = ([:], [:], [], 0) }
      let (now, later) = (seats.byCollection, seats.later)
      return (now.values.joined().compactMap(\.observer), later.mapValues { $0.compactMap(\.observer) }, seats.waiting)
    }
    for observer in observers { observer.finish() }
    if later.isEmpty { return }
    // Runs after a delivery that may be under way. The closure does not hold the hub, which may be in its `deinit`.
    queue.async {
      Self.deliver(waiting, to: later)
      for observer in later.values.joined() { observer.finish() }
    }
  }

  // MARK: Deferred observers

  /// Returns when the deferred observers have received every announcement so far, for tests.
  func settle() async { await queue.run {} }

  private enum Delivery { case none, immediate([Recipient]), scheduled, awaited }
  private typealias Recipient = (collection: Int, observer: any ChangeObserver)

  /// Adds an announcement for the deferred observers, and returns the way in which it is delivered.
  private static func add(_ announcement: Announcement, to seats: inout Seats) -> Delivery {
    guard !seats.later.isEmpty else { return .none }
    // Only if no earlier announcement waits, to keep their order. None can come between, since only the executor announces.
    let count = seats.later.values.reduce(0) { $0 + $1.count }
    if !seats.isDelivering, announcement.changes.count <= few.changes, announcement.changes.count * count <= few.tests {
      var recipients: [Recipient] = []
      recipients.reserveCapacity(count)
      for (collection, seats) in seats.later {
        for seat in seats { if let observer = seat.observer { recipients.append((collection, observer)) } }
      }
      return .immediate(recipients)
    }
    let isFull = seats.waitingCount > mostWaiting
    seats.waiting.append(announcement)
    seats.waitingCount += announcement.changes.count
    if isFull { return .awaited }
    defer { seats.isDelivering = true }
    return seats.isDelivering ? .none : .scheduled
  }

  /// Calls deferred observers on the executor, and leaves the rest to the queue once that takes long.
  ///
  /// On the executor only, as all announcing.
  private func deliverAtOnce(_ announcement: Announcement, to recipients: [Recipient]) {
    let start = ContinuousClock.now
    var own: (collection: Int, changes: [RecordChange])?
    for (position, recipient) in recipients.enumerated() {
      // The clock is read for every fourth observer only, to keep its own cost low.
      if position > 0, position.isMultiple(of: 4), ContinuousClock.now - start > Self.patience {
        let rest = Dictionary(grouping: recipients[position...], by: \.collection).mapValues { $0.map(\.observer) }
        // From here on all announcements wait for the queue, and so come after this one.
        seats.withLock { $0.isDelivering = true }
        queue.async {
          Self.deliver([announcement], to: rest)
          self.deliver()
        }
        return
      }
      // Observers of one collection come one after the other, so its changes are filtered once.
      if own?.collection != recipient.collection {
        own = (recipient.collection, announcement.changes.filter { $0.collection == recipient.collection })
      }
      recipient.observer.receive(own?.changes ?? [], commit: announcement.commit)
    }
  }

  /// Delivers the waiting announcements to the deferred observers until none is left.
  ///
  /// On ``queue`` only.
  private func deliver() {
    while true {
      let (waiting, later) = seats.withLock { seats in
        defer { (seats.waiting, seats.waitingCount) = ([], 0) }
        // Set under the lock of the look, so that an announcement that comes now schedules a new delivery.
        if seats.waiting.isEmpty { seats.isDelivering = false }
        for (collection, list) in seats.later where list.contains(where: { $0.observer == nil }) {
          let left = list.filter { $0.observer != nil }
          seats.later[collection] = left.isEmpty ? nil : left
        }
        return (seats.waiting, seats.waiting.isEmpty ? [:] : seats.later.mapValues { $0.compactMap(\.observer) })
      }
      if waiting.isEmpty { return }
      Self.deliver(waiting, to: later)
    }
  }

  private static func deliver(_ waiting: [Announcement], to later: [Int: [any ChangeObserver]]) {
    for (collection, observers) in later where !observers.isEmpty {
      for announcement in waiting {
        let own = announcement.changes.filter { $0.collection == collection }
        for observer in observers { observer.receive(own, commit: announcement.commit) }
      }
    }
  }
}

/// The newest commit that the observers of a store have received.
final class ChangeProgress: Sendable {
  private let commit = Mutex(Revision.zero)

  /// Newest commit that was announced to all observers that are not deferred, or zero before the first.
  var revision: Revision { commit.withLock { $0 } }

  func advance(to revision: Revision) { commit.withLock { $0 = max($0, revision) } }
}
