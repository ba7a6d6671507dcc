internal import Dispatch
internal import Synchronization

/// An observer of commits, called on a queue of the store: it takes note, and returns at once.
protocol ChangeObserver: AnyObject, Sendable {
  /// Receives the changes of one published state in the order of their commits; `commit` is the newest of the store.
  ///
  /// A change at or below the commit that the observer began from has been seen by it already. There are none when the commits were of
  /// other collections.
  func receive(_ changes: [RecordChange], commit: Revision)
  /// Ends the observation: the store was closed, and nothing more comes.
  func finish()
}

/// The observers of each collection's commits.
///
/// An observer that registers first and then reads the published state misses nothing. Observers are held weakly.
final class ChangeHub: Sendable {
  private struct Seat: Sendable {
    weak let observer: (any ChangeObserver)?
  }

  private struct Seats: Sendable {
    var byCollection: [Int: [Seat]] = [:]
    /// The observers that are told on ``queue``, unless they are few.
    var later: [Int: [Seat]] = [:]
    var isFinished = false
    /// The changes that the later ones have not been told yet.
    var waiting: [Announcement] = []
    var waitingCount = 0
    /// Whether a delivery is scheduled or running, which will see what is added.
    var isDelivering = false
  }

  /// The changes of one published state.
  private struct Announcement: Sendable {
    let changes: [RecordChange]
    let commit: Revision
  }

  private let seats = Mutex(Seats())
  /// The newest commit that was announced to all observers that are told at once.
  let progress = ChangeProgress()
  private let deletionLog: Mutex<DeletionLog>
  /// The queue on which observers are told that together may take longer over a change than a commit should wait.
  private let queue = DispatchQueue(label: "larder.observers", qos: .userInitiated)
  /// The number of changes above which the executor waits until they are delivered, so that memory stays bounded.
  static let mostWaiting = 4_096
  /// The number of changes, and of observers for each of them, up to which later ones are told at once: waking the queue would take longer.
  static let few = (changes: 8, tests: 128)
  /// The time for which later observers are told at once; the queue tells those that are left then.
  static let patience = Duration.microseconds(50)

  /// Makes a hub that knows these deletions from earlier runs.
  init(_ deletions: DeletionLog) { deletionLog = Mutex(deletions) }

  // A store that is dropped without closing ends its readers too.
  deinit { finish() }

  /// Adds an observer of a collection; one that comes after the end is ended at once.
  ///
  /// - Parameter isLater: Whether it is told on ``queue`` where they are more than ``few``, or take long, so that no commit waits for all
  ///   of them.
  func register(_ observer: any ChangeObserver, for collection: Int, isLater: Bool = false) {
    let isFinished = seats.withLock { seats in
      if isLater {
        seats.later[collection, default: []].removeAll { $0.observer == nil }
        seats.later[collection, default: []].append(Seat(observer: observer))
      } else {
        seats.byCollection[collection, default: []].removeAll { $0.observer == nil }
        seats.byCollection[collection, default: []].append(Seat(observer: observer))
      }
      return seats.isFinished
    }
    if isFinished { observer.finish() }
  }

  /// Whether a collection has an observer.
  func isObserved(_ collection: Int) -> Bool {
    seats.withLock { seats in
      [seats.byCollection, seats.later].contains { $0[collection]?.contains { $0.observer != nil } ?? false }
    }
  }

  /// Notes the deletions of commits that are durable, before these are published.
  ///
  /// So a reader of a published state that then asks here gets every deletion that led to it. On the executor only.
  func note(_ deletions: [DeletionLog.Deletion]) { deletionLog.withLock { $0.append(deletions) } }

  /// Returns the keys of the deletions in a collection that are known.
  func knownDeletions(in collection: Int) -> [RecordKey] {
    deletionLog.withLock { Array($0.deletions(in: collection, after: $0.horizon, upTo: Revision(.max)).keys) }
  }

  /// Gives up what is known of deletions up to a commit.
  func forgetDeletions(upTo commit: Revision) { deletionLog.withLock { $0.forget(upTo: commit) } }

  /// Returns the deletions in a collection after one commit, up to another whose state was published; `nil` when some may have been
  /// forgotten.
  func deletions(
    in collection: Int, after revision: Revision, upTo commit: Revision
  ) -> (deletions: [RecordKey: Revision]?, horizon: Revision) {
    deletionLog.withLock { log in
      guard revision >= log.horizon else { return (nil, log.horizon) }
      return (log.deletions(in: collection, after: revision, upTo: commit), log.horizon)
    }
  }

  /// Announces to the observers of each collection the changes that were published; to those that are told later, it has them announced.
  ///
  /// Deletions among them were noted before, by ``note(_:)``.
  ///
  /// On the executor only.
  func announce(_ changes: [RecordChange], commit: Revision) {
    let (observers, delivery) = seats.withLock { seats in
      (seats.byCollection.mapValues { $0.compactMap(\.observer) }, Self.add(Announcement(changes: changes, commit: commit), to: &seats))
    }
    for (collection, observers) in observers where !observers.isEmpty {
      let own = changes.filter { $0.collection == collection }
      for observer in observers { observer.receive(own, commit: commit) }
    }
    progress.advance(to: commit)
    switch delivery {
    case .none: break
    case .immediate(let later): deliverAtOnce(Announcement(changes: changes, commit: commit), to: later)
    case .scheduled: queue.async { self.deliver() }
    case .awaited: queue.sync { self.deliver() }
    }
  }

  /// Ends the feeds of all observers: the store was closed.
  ///
  /// Those that are told later end behind what they are still to be told.
  func finish() {
    let (observers, later, waiting) = seats.withLock { seats in
      seats.isFinished = true
      defer { (seats.byCollection, seats.later, seats.waiting, seats.waitingCount) = ([:], [:], [], 0) }
      let (now, later) = (seats.byCollection, seats.later)
      return (now.values.joined().compactMap(\.observer), later.mapValues { $0.compactMap(\.observer) }, seats.waiting)
    }
    for observer in observers { observer.finish() }
    if later.isEmpty { return }
    // Behind the delivery that may be under way; without the hub, which may be going.
    queue.async {
      Self.deliver(waiting, to: later)
      for observer in later.values.joined() { observer.finish() }
    }
  }

  // MARK: Telling later

  /// Returns when the later observers were told of everything that was announced: for tests.
  func settle() async { await queue.run {} }

  private enum Delivery { case none, immediate([Recipient]), scheduled, awaited }
  private typealias Recipient = (collection: Int, observer: any ChangeObserver)

  /// Adds what is to be told later, and says what brings it there.
  private static func add(_ announcement: Announcement, to seats: inout Seats) -> Delivery {
    guard !seats.later.isEmpty else { return .none }
    // Only where nothing is still to be told before; nothing can come between, since only the executor announces.
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

  /// Tells later observers without the queue, which tells those that are left when that takes long.
  ///
  /// On the executor only, as all announcing.
  private func deliverAtOnce(_ announcement: Announcement, to recipients: [Recipient]) {
    let start = ContinuousClock.now
    var own: (collection: Int, changes: [RecordChange])?
    for (position, recipient) in recipients.enumerated() {
      if position > 0, position.isMultiple(of: 4), ContinuousClock.now - start > Self.patience {
        let rest = Dictionary(grouping: recipients[position...], by: \.collection).mapValues { $0.map(\.observer) }
        // From here on all that is announced waits for the queue, and so comes after this.
        seats.withLock { $0.isDelivering = true }
        queue.async {
          Self.deliver([announcement], to: rest)
          self.deliver()
        }
        return
      }
      if own?.collection != recipient.collection {
        own = (recipient.collection, announcement.changes.filter { $0.collection == recipient.collection })
      }
      recipient.observer.receive(own?.changes ?? [], commit: announcement.commit)
    }
  }

  /// Tells the later observers what waits, until nothing does.
  ///
  /// On ``queue`` only.
  private func deliver() {
    while true {
      let (waiting, later) = seats.withLock { seats in
        defer { (seats.waiting, seats.waitingCount) = ([], 0) }
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

/// The newest commit that the observers of a store were told of.
final class ChangeProgress: Sendable {
  private let commit = Mutex(Revision.zero)

  /// The newest commit that was announced to all observers; zero before the first.
  var revision: Revision { commit.withLock { $0 } }

  func advance(to revision: Revision) { commit.withLock { $0 = max($0, revision) } }
}
