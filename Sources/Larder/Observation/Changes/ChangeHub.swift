internal import Synchronization

/// An observer of commits, called on the store's executor: it takes note, and returns at once.
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
    var isFinished = false
  }

  private let seats = Mutex(Seats())
  /// The newest commit that was announced to all observers.
  let progress = ChangeProgress()
  private let deletionLog: Mutex<DeletionLog>

  /// Makes a hub that knows these deletions from earlier runs.
  init(_ deletions: DeletionLog) { deletionLog = Mutex(deletions) }

  // A store that is dropped without closing ends its readers too.
  deinit { finish() }

  /// Adds an observer of a collection; one that comes after the end is ended at once.
  func register(_ observer: any ChangeObserver, for collection: Int) {
    let isFinished = seats.withLock { seats in
      seats.byCollection[collection, default: []].removeAll { $0.observer == nil }
      seats.byCollection[collection, default: []].append(Seat(observer: observer))
      return seats.isFinished
    }
    if isFinished { observer.finish() }
  }

  /// Whether a collection has an observer.
  func isObserved(_ collection: Int) -> Bool {
    seats.withLock { seats in seats.byCollection[collection]?.contains { $0.observer != nil } ?? false }
  }

  /// Notes the deletions of commits that are durable, before these are published.
  ///
  /// So a reader of a published state that then asks here gets every deletion that led to it. On the executor only.
  func note(_ deletions: [DeletionLog.Deletion]) { deletionLog.withLock { $0.append(deletions) } }

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

  /// Announces to the observers of each collection the changes that were published.
  ///
  /// Deletions among them were noted before, by ``note(_:)``.
  ///
  /// On the executor only.
  func announce(_ changes: [RecordChange], commit: Revision) {
    let observers = seats.withLock { seats in seats.byCollection.mapValues { $0.compactMap(\.observer) } }
    for (collection, observers) in observers where !observers.isEmpty {
      let own = changes.filter { $0.collection == collection }
      for observer in observers { observer.receive(own, commit: commit) }
    }
    progress.advance(to: commit)
  }

  /// Ends the feeds of all observers: the store was closed.
  func finish() {
    let observers = seats.withLock { seats in
      seats.isFinished = true
      defer { seats.byCollection = [:] }
      return seats.byCollection.values.joined().compactMap(\.observer)
    }
    for observer in observers { observer.finish() }
  }
}

/// The newest commit that the observers of a store were told of.
final class ChangeProgress: Sendable {
  private let commit = Mutex(Revision.zero)

  /// The newest commit that was announced to all observers; zero before the first.
  var revision: Revision { commit.withLock { $0 } }

  func advance(to revision: Revision) { commit.withLock { $0 = max($0, revision) } }
}
