internal import Synchronization

extension Store {
  /// Returns the records of a collection that are changed from now on by writes of this device, of this process or of another one.
  package func edits(of collection: Int) -> StoredEdits {
    let edits = StoredEdits()
    core.hub.register(edits, for: collection)
    return edits
  }
}

/// The records of a collection that writes of this device have changed and that its one reader has not taken yet, each once.
package final class StoredEdits: ChangeObserver {
  private let keys = Mutex<Set<RecordKey>>([])
  private let signal = Signal()

  func receive(_ changes: [RecordChange], commit: Revision) {
    let edited = changes.lazy.filter { $0.origin != .remote && $0.origin != .migration }.map(\.key)
    let isEmpty = keys.withLock { keys in
      keys.formUnion(edited)
      return keys.isEmpty
    }
    if !isEmpty { signal.raise() }
  }

  func finish() { signal.finish() }

  /// Returns the keys of all that have changed, as soon as there are some; `nil` once the store is closed, and when the task is cancelled.
  package nonisolated(nonsending) func next() async -> Set<RecordKey>? {
    while !Task.isCancelled {
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = keys.withLock { keys in
        defer { keys = [] }
        return keys
      }
      if !taken.isEmpty { return taken }
      if isFinished { return nil }
      await signal.wait(after: moment)
    }
    return nil
  }
}
