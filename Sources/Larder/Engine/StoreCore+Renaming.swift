internal import Synchronization

/// Moves of a collection's records to another name, for ``RepositorySchema/renamedFrom``.
///
/// A move is one commit, through the same path as every write. The backend receives deletions of the old addresses and records at the new
/// ones. Every deletion carries ``movedVersion`` as its schema version. By this version an opening distinguishes a moved collection from
/// one that its user emptied.
extension StoreCore {
  /// Schema version of the tombstones of moved records: the largest version that backends store.
  static let movedVersion = Int(Int32.max)

  /// Moves the records of a collection to another name, unless that was done before.
  ///
  /// - Parameters:
  ///   - collection: The position of the collection that the records move to.
  ///   - version: Version of the schema that is being opened. If it is newer than the records, the store is copied before they move.
  ///   - fits: Returns whether a record can be read as the schema's type.
  /// - Returns: The number of moved records and the commit of the move, or `nil` if there were none.
  /// - Throws: as ``Renaming/needsMove(in:)``. `.unsupported` if the access, the type or an open repository forbids the move. Otherwise as
  ///   ``submit(_:_:)``.
  func rename(
    _ renaming: Renaming, to collection: Int, version: Int, fits: (RecordSlot) -> Bool
  ) async throws(RepositoryError) -> (recordCount: Int, commit: Revision)? {
    guard try renaming.needsMove(in: state) else { return nil }
    if let refusal = renaming.refusal(of: options.access) { throw refusal }
    try renaming.checkType(in: state, fits)
    // Before the first `await`: a repository that opens the old name during the move would show an empty collection.
    try reserve(renaming)
    do throws(RepositoryError) {
      let bytes = try await bytesOfRefusedRecords(of: renaming.oldName)
      // `.alone`, so that the move does not fail because of another write in its group.
      return try await write(size: .alone) { [renaming, self] pending throws(RepositoryError) in
        // Once more in the turn of the write, because earlier writes may have changed either name.
        guard try renaming.needsMove(in: pending.collections, pending.names), let old = pending.collection(named: renaming.oldName) else {
          return nil
        }
        let records = pending.collections[old].records
        // After the move, the older app cannot open the store, but it can open this copy.
        if records.newestSchemaVersion < version { try copyStore(before: version, of: old, movingTo: collection) }
        try pending.move(from: old, to: collection, bytes)
        return (records.count, pending.revision)
      }
    } catch {
      // Nothing has moved, so the old name may be opened.
      register.release(renaming.oldName)
      throw error.code == .full || error.code == .tooLarge ? renaming.needsRoom(error) : error
    }
  }

  /// Reserves the old name of a collection, so that no repository opens it while its records move, or afterwards.
  /// - Throws: `.unsupported` if it was opened before.
  private func reserve(_ renaming: Renaming) throws(RepositoryError) {
    guard register.reserve(renaming.oldName) else {
      throw RepositoryError(
        .unsupported,
        "expected to move the records of \"\(renaming.oldName)\" to \"\(renaming.name)\", found that \"\(renaming.oldName)\" was opened "
          + "since the store was; close the store, and open \"\(renaming.name)\" first", file: backend.name)
    }
  }

  /// Returns the stored records whose bytes are not in memory, as those over a limit.
  private func bytesOfRefusedRecords(of name: String) async throws(RepositoryError) -> [RecordKey: StoredRecord] {
    let state = self.state
    guard let position = state.names.firstIndex(of: name) else { return [:] }
    var isMissing = false
    state.collections[position].records.visit { slot in
      isMissing = slot.encoded == nil
      return !isMissing
    }
    // Hardly any store has such records, and for them the whole store is read again.
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

/// A move of a collection's records from an old name to a new one.
struct Renaming: Sendable {
  let oldName: String
  let name: String
  let file: String

  /// Returns whether records under the old name have to move.
  ///
  /// - Throws: `.unsupported` if both names have records, or if the collection was synced under the old name.
  func needsMove(in state: StoreState) throws(RepositoryError) -> Bool { try needsMove(in: state.collections, state.names) }

  /// Returns whether records under the old name have to move, judged by collections and their names.
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
        // Compared as bytes: a combining mark after the slash would form one character with it, which is no prefix.
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

  /// Returns the error for moving records between two collection names that both have records.
  func bothNames(count: Int, oldCount: Int) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected records under one of the names \(oldName) and \(name), found \(oldCount) under \(oldName) and \(count) under \(name); open each "
        + "under its own name without `renamedFrom:`, save the records of one in the other, and delete them in the first", file: file)
  }

  /// Returns the error for a store that may not move records, because it is read-only or shared, or `nil` for an exclusive store.
  ///
  /// An older app that has the shared store open would lose sight of its records, and write others under the old name.
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

  /// Returns the error for a disk or a batch without room for records that move to another name.
  func needsRoom(_ error: RepositoryError) -> RepositoryError {
    RepositoryError(
      error.code,
      "expected room to move the records of \(oldName) to \(name), found none: \(error.message); nothing was moved: make room, or open them "
        + "under the name \(oldName)", file: error.file ?? file, underlying: error)
  }

  /// Refuses to move records if none of them decodes as the new type, because they then belong to another collection.
  ///
  /// At most 8 records are tried. One that does not decode is no reason to refuse, and moves with the others.
  /// - Throws: `.unsupported`.
  func checkType(in state: StoreState, _ fits: (RecordSlot) -> Bool) throws(RepositoryError) {
    guard let position = state.names.firstIndex(of: oldName) else { return }
    var (tried, isFitting) = (0, false)
    state.collections[position].records.visit { slot in
      // A slot of its own, because decoding releases the bytes of a slot, and the move needs them.
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

  /// Prefix of the names of collections in which sync keeps its own data.
  ///
  /// Their keys begin with the name of a synced collection.
  private static let syncPrefix = "larder.sync."
}

extension PendingState {
  /// Moves all records of a collection to another one as they are stored, and its known deletions with them.
  ///
  /// - Parameter bytes: Stored records whose bytes are not in memory.
  /// - Throws: `.unsupported` for a record whose bytes are neither in memory nor in `bytes`. `.corrupted` if a trigger finds its own data
  ///   damaged.
  mutating func move(from old: Int, to new: Int, _ bytes: [RecordKey: StoredRecord]) throws(RepositoryError) {
    for key in deletionsToMove(from: old) { noteDeletion(of: key, in: new) }
    for slot in collections[old].records.ordered() {
      // Bytes that a migration has replaced in memory do not fit the version with which the record is moved.
      var value = slot.encoded.flatMap { $0.isBroughtUp ? nil : $0.data }
      var moved = value.map { RecordSlot(key: slot.key, revision: revision, schemaVersion: slot.schemaVersion, value: $0) }
      // A record that was written after `bytes` were read must not return to its old value.
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
      // By this version, later openings report a moved collection and not an emptied one.
      remove(slot.key, in: old, schemaVersion: StoreCore.movedVersion)
    }
  }

  /// Returns the known deletions of a collection whose records move, or none if the tombstones would exceed their limit.
  private func deletionsToMove(from collection: Int) -> [RecordKey] {
    let records = collections[collection].records
    // A record that was inserted again is still in the log of deletions, and moves as a record.
    let deleted = core.hub.knownDeletions(in: collection).filter { records[$0] == nil }.sorted()
    return deleted.count + records.count <= core.options.limits.tombstones ? deleted : []
  }

  /// Runs the trigger of a tracked collection for a record that moves into it.
  private mutating func trackMove(of key: RecordKey, to collection: Int, _ value: StoredValue) throws(RepositoryError) {
    guard let trigger = triggers[collection] else { return }
    let change = TriggeredChange(collection: names[collection], key: key, old: nil, new: value, coder: trigger.coder)
    do throws(RepositoryError) {
      try trigger.trigger.willChange(change, in: &self)
    } catch {
      // A record that does not decode or has no scope moves all the same. The edit that repairs it is queued for the server then.
      if error.code == .corrupted { throw error }
    }
  }
}
