internal import Synchronization

/// The move of a collection's records to another name, as ``RepositorySchema/renamedFrom`` asks for it.
///
/// One commit, through the same path as every write: a backend sees deletions of the old addresses and records at the new ones. Every
/// deletion carries ``movedVersion`` as its schema version. An opening that reads it knows that the collection was not emptied by its user.
extension StoreCore {
  /// The schema version of tombstones under a name whose records have moved to another one: the largest that backends take.
  static let movedVersion = Int(Int32.max)

  /// Moves the records of a collection to another name, unless that has been done.
  ///
  /// - Parameter collection: The position of the collection that the records move to.
  /// - Returns: The number of records that moved, and the commit that moved them; `nil` when there were none.
  /// - Throws: as ``Renaming/needsMove(in:)``; otherwise as ``submit(_:_:)``.
  func rename(_ renaming: Renaming, to collection: Int) async throws(RepositoryError) -> (recordCount: Int, commit: Revision)? {
    guard try renaming.needsMove(in: state) else { return nil }
    let access = options.access
    guard access != .readOnly else { throw renaming.needsWriting(file: backend.name) }
    guard !itemTypes.withLock({ $0[renaming.oldName] != nil }) else {
      throw RepositoryError(
        .unsupported,
        "expected to move the collection \(renaming.oldName) to \(renaming.name), found a repository of \(renaming.oldName) open in this store; "
          + "open \(renaming.name) alone", file: backend.name)
    }
    let bytes = try await bytesOfRefusedRecords(of: renaming.oldName)
    // By itself: it must not fail because of writes beside it.
    return try await write(size: .alone) { [renaming] pending throws(RepositoryError) in
      // Another process may have moved them since.
      guard try renaming.needsMove(in: pending.collections, pending.names), let old = pending.collection(named: renaming.oldName) else {
        return nil
      }
      let count = pending.collections[old].records.count
      try pending.move(from: old, to: collection, bytes)
      return (count, pending.revision)
    }
  }

  /// Returns the stored records whose bytes are with the backend alone, because they are over a limit.
  private func bytesOfRefusedRecords(of name: String) async throws(RepositoryError) -> [RecordKey: StoredRecord] {
    let state = self.state
    guard let position = state.names.firstIndex(of: name) else { return [:] }
    var isMissing = false
    state.collections[position].records.visit { slot in
      isMissing = slot.encoded == nil
      return !isMissing
    }
    guard isMissing else { return [:] }
    return try await maintain { backend throws(RepositoryError) in
      var found: [RecordKey: StoredRecord] = [:]
      let slots = state.collections[position].records
      _ = try backend.readAll { record in
        if record.collection == name, record.value != nil, slots[record.key]?.encoded == nil { found[record.key] = record }
      }
      return found
    }
  }
}

/// A collection whose records move to another name.
struct Renaming: Sendable {
  let oldName: String
  let name: String
  let file: String

  /// Returns whether there are records under the old name that have to move.
  ///
  /// - Throws: `.unsupported` where both names have records, and for a collection that was synced under the old name.
  func needsMove(in state: StoreState) throws(RepositoryError) -> Bool { try needsMove(in: state.collections, state.names) }

  /// Returns whether there are records under the old name that have to move, in the collections of some names.
  func needsMove(in collections: [CollectionState], _ names: [String]) throws(RepositoryError) -> Bool {
    func records(_ name: String) -> RecordMap? { names.firstIndex(of: name).map { collections[$0].records } }
    guard let old = records(oldName), old.count > 0 else { return false }
    let count = records(name)?.count ?? 0
    guard count == 0 else {
      throw RepositoryError(
        .unsupported,
        "expected records under one of the names \(oldName) and \(name), found \(old.count) under \(oldName) and \(count) under \(name); "
          + "open each under its own name without `renamedFrom:`, and save the records of one in the other", file: file)
    }
    for (position, other) in names.enumerated() where other.hasPrefix(Self.syncPrefix) {
      var isSynced = false
      collections[position].records.visit { slot in
        isSynced = slot.key.text.hasPrefix(oldName + "/")
        return !isSynced
      }
      guard !isSynced else {
        throw RepositoryError(
          .unsupported,
          "expected a collection that was never synced as \(oldName), found one that was; the server knows its records by that name, so keep it",
          file: file)
      }
    }
    return true
  }

  /// The error for a store that was opened for reading before its records were moved.
  func needsWriting(file: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected the records of \(name), found them under the old name \(oldName) in a store opened read-only; open it once for writing, "
        + "which moves them", file: file)
  }

  /// The beginning of the names of collections in which sync keeps what it knows; their keys begin with the name of a synced collection.
  private static let syncPrefix = "larder.sync."
}

extension PendingState {
  /// Moves all records of a collection to another one, as they are stored, and what is known of its deletions.
  ///
  /// - Parameter bytes: The stored records whose bytes are not in memory.
  /// - Throws: `.unsupported` for a record whose bytes are in neither; `.corrupted` when a trigger finds what it keeps damaged.
  mutating func move(from old: Int, to new: Int, _ bytes: [RecordKey: StoredRecord]) throws(RepositoryError) {
    for key in deletionsToMove(from: old) { noteDeletion(of: key, in: new) }
    for slot in collections[old].records.ordered() {
      var value = slot.encoded.flatMap { $0.isBroughtUp ? nil : $0.data }
      var moved = value.map { RecordSlot(key: slot.key, revision: revision, schemaVersion: slot.schemaVersion, value: $0) }
      if let stored = bytes[slot.key], let refused = stored.value, stored.revision == slot.revision {
        let record = StoredRecord(
          collection: names[new], key: slot.key, revision: revision, schemaVersion: stored.schemaVersion, value: refused)
        (moved, value) = (StoreLoader.slot(of: record, refused, core.options.limits).0, refused)
      }
      guard let moved, let value else {
        throw RepositoryError(
          .unsupported,
          "expected the stored bytes of every record of \(names[old]), found one that is in use; close its other repositories",
          keyHash: slot.key.hash)
      }
      try trackMove(of: slot.key, to: new, StoredValue(schemaVersion: slot.schemaVersion, json: value))
      change(slot.key, in: new, schemaVersion: slot.schemaVersion, to: (moved, value))
      change(slot.key, in: old, schemaVersion: StoreCore.movedVersion, to: nil)
    }
  }

  /// The known deletions of a collection whose records are moved; none where the tombstones of the move itself take all the room there is.
  private func deletionsToMove(from collection: Int) -> [RecordKey] {
    let records = collections[collection].records
    let deleted = core.hub.knownDeletions(in: collection).filter { records[$0] == nil }.sorted()
    return deleted.count + records.count <= core.options.limits.tombstones ? deleted : []
  }

  /// Gives the trigger of a tracked collection its turn for a record that moves there.
  private mutating func trackMove(of key: RecordKey, to collection: Int, _ value: StoredValue) throws(RepositoryError) {
    guard let trigger = triggers[collection] else { return }
    let change = TriggeredChange(collection: names[collection], key: key, old: nil, new: value, coder: trigger.coder)
    do throws(RepositoryError) {
      try trigger.trigger.willChange(change, in: &self)
    } catch {
      // A record that does not decode, or has no scope, moves as every other does. An edit that mends it is noted then.
      if error.code == .corrupted { throw error }
    }
  }
}
