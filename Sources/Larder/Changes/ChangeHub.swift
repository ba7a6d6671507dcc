internal import DequeModule
internal import Dispatch
internal import Synchronization

/// An observer of commits, which the ``ChangeHub`` calls on a dispatch queue of the store and which must not block.
protocol ChangeObserver: AnyObject, Sendable {
  /// Receives the changes that a published state made to the observer's collection, in the order of commits, and the state's commit.
  ///
  /// `changes` may include changes of commits that the observer has read already, which the observer skips by their revision. `changes` is
  /// empty if the commits changed other collections only.
  func receive(_ changes: [RecordChange], commit: Revision)
  /// Ends the observation, because the store was closed and the observer receives no more changes.
  func finish()
}

/// The hub that announces each commit of a store to the observers of its collections.
///
/// An observer that registers first and then reads the published state misses no commit. The hub holds observers weakly.
final class ChangeHub: Sendable {
  private struct Seat: Sendable {
    weak let observer: (any ChangeObserver)?
  }

  private struct Seats: Sendable {
    var byCollection: [Int: [Seat]] = [:]
    /// Deferred observers by collection, which the hub may call after the commit has ended.
    ///
    /// Within the limits ``few``, the hub calls deferred observers before the commit ends. Beyond the limits ``few``, the hub calls
    /// deferred observers on ``queue``, and a commit waits for them only if more than ``mostWaiting`` changes wait.
    var later: [Int: [Seat]] = [:]
    var isFinished = false
    /// Announcements that the deferred observers have not received yet.
    var waiting: [Announcement] = []
    /// Number of changes in all announcements of ``waiting``.
    var waitingCount = 0
    /// True if a delivery on ``queue`` is scheduled or running.
    ///
    /// A scheduled or running delivery also delivers the announcements that are added before it ends.
    var isDelivering = false
  }

  /// The changes of one published state of the store.
  private struct Announcement: Sendable {
    let changes: [RecordChange]
    let commit: Revision
  }

  private let seats = Mutex(Seats())
  /// Newest commit that the hub has announced to all observers that are not deferred.
  let progress = ChangeProgress()
  private let deletionLog: Mutex<DeletionLog>
  /// Queue on which the hub calls deferred observers, because all of them together may take longer than a commit should wait.
  private let queue = DispatchQueue(label: "larder.observers", qos: .userInitiated)
  /// Number of undelivered changes above which a commit blocks until deferred observers have received them, which bounds memory.
  static let mostWaiting = 4_096
  /// Limits for calling deferred observers before a commit ends: number of changes, and number of changes times number of observers.
  ///
  /// Within the limits ``few``, waking the thread of ``queue`` would take longer than calling the observers.
  static let few = (changes: 8, tests: 128)
  /// Time that a commit spends on calling deferred observers, before it leaves the remaining observers to ``queue``.
  static let patience = Duration.microseconds(50)

  /// Creates a hub with a log of the deletions that were made before the store was opened.
  init(_ deletions: DeletionLog) { deletionLog = Mutex(deletions) }

  // A store that the app drops without closing it must end its readers too, because the readers would otherwise wait forever.
  deinit { finish() }

  /// Adds an observer of a collection, and ends the observer at once if the store is closed.
  ///
  /// - Parameter isLater: True for a deferred observer, which the hub may call after the commit has ended. If the deferred observers are
  ///   many or take long, the hub calls them on ``queue``, so that commits do not wait for all of them.
  func register(_ observer: any ChangeObserver, for collection: Int, isLater: Bool = false) {
    let isFinished = seats.withLock { seats in
      if isLater {
        seats.later[collection, default: []].removeAll { $0.observer == nil }
        seats.later[collection, default: []].append(Seat(observer: observer))
      } else {
        // The hub holds observers weakly, so the entries of released observers stay in the list. If these entries were not removed, each
        // announcement would visit the entries of released observers.
        seats.byCollection[collection, default: []].removeAll { $0.observer == nil }
        seats.byCollection[collection, default: []].append(Seat(observer: observer))
      }
      return seats.isFinished
    }
    // `finish()` ran before this observer was registered, so no other call would end the observer.
    if isFinished { observer.finish() }
  }

  /// Returns true if a collection has an observer.
  func isObserved(_ collection: Int) -> Bool {
    seats.withLock { seats in
      [seats.byCollection, seats.later].contains { $0[collection]?.contains { $0.observer != nil } ?? false }
    }
  }

  /// Adds the deletions of durable commits to the deletion log, before those commits are published.
  ///
  /// A reader that reads a published state and then the log therefore finds every deletion up to that state. Must run on the store's
  /// executor.
  func note(_ deletions: [DeletionLog.Deletion]) { deletionLog.withLock { $0.append(deletions) } }

  /// Returns the keys of all deletions in a collection that the deletion log still holds.
  func knownDeletions(in collection: Int) -> [RecordKey] {
    deletionLog.withLock { Array($0.deletions(in: collection, after: $0.horizon, upTo: Revision(.max)).keys) }
  }

  /// Removes the deletions up to a commit from the deletion log.
  func forgetDeletions(upTo commit: Revision) { deletionLog.withLock { $0.forget(upTo: commit) } }

  /// Returns the deletions in a collection after `revision` and up to `commit`, or `nil` if the log may have dropped some of them.
  ///
  /// The state of `commit` must have been published, so that the log holds every deletion up to `commit`.
  func deletions(
    in collection: Int, after revision: Revision, upTo commit: Revision
  ) -> (deletions: [RecordKey: Revision]?, horizon: Revision) {
    deletionLog.withLock { log in
      // An incomplete list of deletions would leave deleted records in the reader's copy of the collection.
      guard revision >= log.horizon else { return (nil, log.horizon) }
      return (log.deletions(in: collection, after: revision, upTo: commit), log.horizon)
    }
  }

  /// Announces published changes to the observers of each collection.
  ///
  /// Deferred observers may receive the changes after `announce` has returned. The deletions among the changes are in the deletion log
  /// before `announce` is called.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func announce(_ changes: [RecordChange], commit: Revision) {
    let (observers, delivery) = seats.withLock { seats in
      (seats.byCollection.mapValues { $0.compactMap(\.observer) }, Self.add(Announcement(changes: changes, commit: commit), to: &seats))
    }
    // Observers are called without the lock, because a task that registers an observer would wait for the lock during all calls.
    for (collection, observers) in observers where !observers.isEmpty {
      let own = changes.filter { $0.collection == collection }
      for observer in observers { observer.receive(own, commit: commit) }
    }
    // `progress` advances after the observers were called: a task that reads the new `progress` must find the changes in every observer
    // that is not deferred.
    progress.advance(to: commit)
    switch delivery {
    case .none: break
    case .immediate(let later): deliverAtOnce(Announcement(changes: changes, commit: commit), to: later)
    case .scheduled: queue.async { self.deliver() }
    // `queue.sync` blocks the executor, and so the next commit, until the deferred observers have received all changes. If the executor did
    // not wait, the number of undelivered changes could grow without bound.
    case .awaited: queue.sync { self.deliver() }
    }
  }

  /// Ends all observers, because the store was closed.
  ///
  /// Deferred observers receive the waiting announcements first and finish after them.
  func finish() {
    let (observers, later, waiting) = seats.withLock { seats in
      seats.isFinished = true
      defer { (seats.byCollection, seats.later, seats.waiting, seats.waitingCount) = ([:], [:], [], 0) }
      let (now, later) = (seats.byCollection, seats.later)
      return (now.values.joined().compactMap(\.observer), later.mapValues { $0.compactMap(\.observer) }, seats.waiting)
    }
    for observer in observers { observer.finish() }
    if later.isEmpty { return }
    // Deferred observers finish on `queue`, after a delivery that may be running there. The closure does not capture the hub, which may be
    // in its `deinit`.
    queue.async {
      Self.deliver(waiting, to: later)
      for observer in later.values.joined() { observer.finish() }
    }
  }

  // MARK: Deferred observers

  /// Waits until the deferred observers have received every announcement made so far, for tests.
  func settle() async { await queue.run {} }

  private enum Delivery { case none, immediate([Recipient]), scheduled, awaited }
  private typealias Recipient = (collection: Int, observer: any ChangeObserver)

  /// Adds an announcement for the deferred observers, and returns the way in which the hub delivers it.
  private static func add(_ announcement: Announcement, to seats: inout Seats) -> Delivery {
    guard !seats.later.isEmpty else { return .none }
    // An announcement is delivered before the commit ends only if no earlier announcement waits, because observers need commits in order.
    // Only the executor makes announcements, one after the other, so no later announcement can overtake this one.
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

  /// Calls deferred observers on the executor, and leaves the remaining observers to ``queue`` once the calls have taken ``patience``.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func deliverAtOnce(_ announcement: Announcement, to recipients: [Recipient]) {
    let start = ContinuousClock.now
    var own: (collection: Int, changes: [RecordChange])?
    for (position, recipient) in recipients.enumerated() {
      // The clock is read for every fourth observer only, because reading it for each one would cost time on every commit.
      if position > 0, position.isMultiple(of: 4), ContinuousClock.now - start > Self.patience {
        let rest = Dictionary(grouping: recipients[position...], by: \.collection).mapValues { $0.map(\.observer) }
        // While `isDelivering` is true, every new announcement is queued, so each observer receives the announcements in the order of
        // commits.
        seats.withLock { $0.isDelivering = true }
        queue.async {
          Self.deliver([announcement], to: rest)
          self.deliver()
        }
        return
      }
      // Observers of one collection are consecutive, so the changes of a collection are filtered once and not once for each observer.
      if own?.collection != recipient.collection {
        own = (recipient.collection, announcement.changes.filter { $0.collection == recipient.collection })
      }
      recipient.observer.receive(own?.changes ?? [], commit: announcement.commit)
    }
  }

  /// Calls the deferred observers with all waiting announcements, until no announcement is left.
  ///
  /// Must run on ``queue``, so that announcements are delivered one after the other.
  private func deliver() {
    while true {
      let (waiting, later) = seats.withLock { seats in
        defer { (seats.waiting, seats.waitingCount) = ([], 0) }
        // `isDelivering` is cleared under the same lock as the check for waiting announcements, so that an announcement that is added
        // afterwards schedules a new delivery.
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

/// The newest commit that was announced to observers of a store, in an object that a reader can hold without keeping the store open.
final class ChangeProgress: Sendable {
  private let commit = Mutex(Revision.zero)

  /// Newest commit that the hub has announced to all observers that are not deferred, or zero before the first announcement.
  var revision: Revision { commit.withLock { $0 } }

  func advance(to revision: Revision) { commit.withLock { $0 = max($0, revision) } }
}

/// A log of a store's newest deletions, from which a resumed reader gets the keys that were deleted since its revision.
///
/// Invariant: the log holds every deletion after ``horizon``. If a deleted record is saved again, its deletion stays in the log. A reader
/// of the log must therefore check whether the records of the commit that it reads contain the deleted key.
struct DeletionLog: Sendable {
  struct Deletion: Sendable {
    let collection: Int
    let key: RecordKey
    let revision: Revision
  }

  private let limit: Int
  private var deletions: Deque<Deletion>
  /// Revision up to which the log may have dropped deletions.
  private(set) var horizon: Revision

  /// Creates a log of the deletions that the backend returned when the store was opened.
  init(_ deletions: [Deletion] = [], horizon: Revision = .zero, limit: Int) {
    self.limit = limit
    self.horizon = horizon
    self.deletions = []
    append(deletions)
  }

  /// Adds deletions that are newer than all deletions in the log, and drops the oldest ones beyond the limit.
  mutating func append(_ newer: [Deletion]) {
    deletions += newer.sorted { $0.revision < $1.revision }
    // The horizon moves to each dropped deletion, because a reader that resumes from before the horizon must load everything again. If the
    // horizon did not move, a reader that resumes from before it would miss the dropped deletion.
    while deletions.count > limit, let oldest = deletions.popFirst() { horizon = max(horizon, oldest.revision) }
  }

  /// Drops all deletions from the log, none of which may be newer than `commit`.
  mutating func forget(upTo commit: Revision) {
    deletions.removeAll()
    horizon = max(horizon, commit)
  }

  /// Returns the last deletion of each key of a collection after `revision`, up to and including `commit`.
  ///
  /// `revision` must not be before ``horizon``. The cost is linear in the number of logged deletions after `revision`.
  func deletions(in collection: Int, after revision: Revision, upTo commit: Revision) -> [RecordKey: Revision] {
    var found: [RecordKey: Revision] = [:]
    for deletion in deletions.reversed() {
      // The log is sorted by revision, so all remaining deletions are at `revision` or older.
      guard deletion.revision > revision else { break }
      if deletion.collection == collection, deletion.revision <= commit, found[deletion.key] == nil {
        found[deletion.key] = deletion.revision
      }
    }
    return found
  }
}
