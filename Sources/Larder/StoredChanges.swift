internal import Synchronization

extension Store {
  /// Returns the records of a collection that are changed from now on, whoever changes them.
  package func changes(of collection: Int) -> StoredChanges {
    let changes = StoredChanges()
    core.hub.register(changes, for: collection)
    return changes
  }

  /// The newest commit that ``StoredChanges`` were told of; zero before the first.
  ///
  /// On the store's executor it is the newest one, as in a closure of ``writeStored(durability:_:)``; elsewhere it may be behind.
  package var announced: Revision { core.hub.progress.revision }
}

/// The records of a collection that have changed and that its one reader has not asked for yet, each once.
package final class StoredChanges: ChangeObserver {
  private let keys = Mutex<Set<RecordKey>>([])

  func receive(_ changes: [RecordChange], commit: Revision) {
    if !changes.isEmpty { keys.withLock { $0.formUnion(changes.lazy.map(\.key)) } }
  }

  func finish() {}

  /// Returns the keys of all that have changed since the last call.
  package func take() -> Set<RecordKey> {
    keys.withLock { keys in
      defer { keys = [] }
      return keys
    }
  }
}

extension PendingState {
  /// Returns the records of a collection that are changed by writes that are committed together with this one, and come before it.
  package func staged(in collection: Int) -> [RecordKey] { changes.lazy.filter { $0.collection == collection }.map(\.key) }
}
