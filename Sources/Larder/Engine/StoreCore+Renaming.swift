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
  /// - Parameters:
  ///   - collection: The position of the collection that the records move to.
  ///   - version: The version of the schema that asks for it. Where it is newer than the records, the store is copied before they move.
  ///   - fits: Returns whether a record can be read as the type of the schema.
  /// - Returns: The number of records that moved, and the commit that moved them; `nil` when there were none.
  /// - Throws: as ``Renaming/needsMove(in:)``; otherwise as ``submit(_:_:)``.
  func rename(
    _ renaming: Renaming, to collection: Int, version: Int, fits: (RecordSlot) -> Bool
  ) async throws(RepositoryError) -> (recordCount: Int, commit: Revision)? {
    guard try renaming.needsMove(in: state) else { return nil }
    if let refusal = renaming.refusal(of: options.access) { throw refusal }
    try renaming.checkType(in: state, fits)
    try reserve(renaming)
    do throws(RepositoryError) {
      let bytes = try await bytesOfRefusedRecords(of: renaming.oldName)
      // By itself: it must not fail because of writes beside it.
      return try await write(size: .alone) { [renaming, self] pending throws(RepositoryError) in
        guard try renaming.needsMove(in: pending.collections, pending.names), let old = pending.collection(named: renaming.oldName) else {
          return nil
        }
        let records = pending.collections[old].records
        // Behind the move, the older app cannot open the store. It can open the copy.
        if records.newestSchemaVersion < version { try copyStore(before: version, of: old, movingTo: collection) }
        try pending.move(from: old, to: collection, bytes)
        return (records.count, pending.revision)
      }
    } catch {
      register.release(renaming.oldName)
      throw error.code == .full || error.code == .tooLarge ? renaming.needsRoom(error) : error
    }
  }

  /// Keeps the old name from being opened in this store while its records move, and afterwards.
  /// - Throws: `.unsupported` when it has been opened.
  private func reserve(_ renaming: Renaming) throws(RepositoryError) {
    guard register.reserve(renaming.oldName) else {
      throw RepositoryError(
        .unsupported,
        "expected to move the records of \"\(renaming.oldName)\" to \"\(renaming.name)\", found that \"\(renaming.oldName)\" was opened "
          + "since the store was; close the store, and open \"\(renaming.name)\" first", file: backend.name)
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
      throw bothNames(count: count, oldCount: old.count)
    }
    for (position, other) in names.enumerated() where other.hasPrefix(Self.syncPrefix) {
      var isSynced = false
      collections[position].records.visit { slot in
        isSynced = slot.key.text.utf8.starts(with: (oldName + "/").utf8)
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

  /// The error for records under both names, of which nobody can know which are meant.
  func bothNames(count: Int, oldCount: Int) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected records under one of the names \(oldName) and \(name), found \(oldCount) under \(oldName) and \(count) under \(name); open each "
        + "under its own name without `renamedFrom:`, save the records of one in the other, and delete them in the first", file: file)
  }

  /// Returns the error with which a read-only or a shared store refuses to move records; `nil` for an exclusive store, which moves them.
  ///
  /// An older app that has a shared store open would see its records go, and write others under the old name.
  func refusal(of access: StoreOptions.Access) -> RepositoryError? {
    switch access {
    case .exclusive: nil
    case .readOnly:
      RepositoryError(
        .unsupported,
        "expected the records of \(name), found them under the old name \(oldName) in a store opened read-only; open it once for writing, "
          + "which moves them", file: file)
    case .shared:
      RepositoryError(
        .unsupported,
        "expected the records of \(name), found them under the old name \(oldName) in a store that several processes may write; open it once "
          + "with `access: .exclusive` while no other process has it open, which moves them", file: file)
    }
  }

  /// The error for a disk or a batch without room for the move.
  func needsRoom(_ error: RepositoryError) -> RepositoryError {
    RepositoryError(
      error.code,
      "expected room to move the records of \(oldName) to \(name), found none: \(error.message); nothing was moved: make room, or open them "
        + "under the name \(oldName)", file: error.file ?? file, underlying: error)
  }

  /// Refuses to move records none of which is of the type that is asked for: then they belong to another collection.
  ///
  /// A few tell: one that does not decode is no reason, and moves as the others do.
  /// - Throws: `.unsupported`.
  func checkType(in state: StoreState, _ fits: (RecordSlot) -> Bool) throws(RepositoryError) {
    guard let position = state.names.firstIndex(of: oldName) else { return }
    var (tried, isFitting) = (0, false)
    state.collections[position].records.visit { slot in
      // Another slot, since decoding gives up the bytes that are moved.
      guard let data = slot.encoded?.data else { return true }
      tried += 1
      isFitting = fits(RecordSlot(key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, value: data))
      return !isFitting && tried < Self.sampleSize
    }
    guard tried > 0, !isFitting else { return }
    throw RepositoryError(
      .unsupported,
      "expected records of the type of \(name) under the old name \(oldName), found \(tried) that do not decode as it; if they are of another "
        + "type, open both collections with one Store, each under its own name", file: file)
  }

  private static let sampleSize = 8

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
          "expected the stored bytes of every record of \(names[old]), found one whose value was replaced meanwhile; open the store again",
          keyHash: slot.key.hash)
      }
      let stored = StoredValue(schemaVersion: slot.schemaVersion, json: value).onOneLine
      try trackMove(of: slot.key, to: new, stored)
      try upsert(moved, as: stored, in: new)
      remove(slot.key, in: old, schemaVersion: StoreCore.movedVersion)
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
