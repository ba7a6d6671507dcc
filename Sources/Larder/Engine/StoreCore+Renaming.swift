internal import Synchronization

/// Moves all records of a collection to another name, for ``RepositorySchema/renamedFrom``.
///
/// The move of a collection is one commit, made like every other write. The backend receives a deletion for each record under the old name,
/// and the record under the new name. Each deletion of a moved record has the schema version ``movedVersion``, by which a later opening
/// distinguishes a moved collection from one that its user has emptied.
extension StoreCore {
  /// Schema version of the tombstones that a move leaves under the old name: the largest version that backends store.
  static let movedVersion = Int(Int32.max)

  /// Moves the records of a collection to another name, unless they were moved before.
  ///
  /// - Parameters:
  ///   - collection: The position of the collection to which the records move.
  ///   - version: Schema version of the repository that is being opened. If the schema is newer than the records, the store is copied to a
  ///     file before the records move.
  ///   - fits: Closure that returns whether a record can be decoded as the schema's type.
  /// - Returns: The number of moved records and the commit of the move, or `nil` if the old name had no records.
  /// - Throws: as ``Renaming/needsMove(in:)``. `.unsupported` if the access, the type or an open repository forbids the move. All other
  ///   errors of a move are those of ``submit(_:_:)``.
  func rename(
    _ renaming: Renaming, to collection: Int, version: Int, fits: (RecordSlot) -> Bool
  ) async throws(RepositoryError) -> (recordCount: Int, commit: Revision)? {
    guard try renaming.needsMove(in: state) else { return nil }
    if let refusal = renaming.refusal(of: options.access) { throw refusal }
    try renaming.checkType(in: state, fits)
    // The old name is reserved before the first `await`, because a repository that opened it during the move would show an empty
    // collection.
    try reserve(renaming)
    do throws(RepositoryError) {
      let bytes = try await bytesOfRefusedRecords(of: renaming.oldName)
      // The size `.alone` gives the move a commit of its own, so that the move does not fail because of another write in its group.
      return try await write(size: .alone) { [renaming, self] pending throws(RepositoryError) in
        // `needsMove` is called again on the executor, because writes committed since the first check may have added records under either
        // name.
        guard try renaming.needsMove(in: pending.collections, pending.names), let old = pending.collection(named: renaming.oldName) else {
          return nil
        }
        let records = pending.collections[old].records
        // After the move, an older version of the app can no longer open the store, but can still open the copy that `copyStore` makes.
        if records.newestSchemaVersion < version { try copyStore(before: version, of: old, movingTo: collection) }
        try pending.move(from: old, to: collection, bytes)
        return (records.count, pending.revision)
      }
    } catch {
      // After a failed move the records still have the old name, so repositories may open the old name again.
      register.release(renaming.oldName)
      throw error.code == .full || error.code == .tooLarge ? renaming.needsRoom(error) : error
    }
  }

  /// Reserves the old name of a collection, so that no repository opens that name during the move or afterwards.
  ///
  /// - Throws: `.unsupported` if the old name was opened before.
  private func reserve(_ renaming: Renaming) throws(RepositoryError) {
    guard register.reserve(renaming.oldName) else {
      throw RepositoryError(
        .unsupported,
        "expected to move the records of \"\(renaming.oldName)\" to \"\(renaming.name)\", found that \"\(renaming.oldName)\" was opened "
          + "since the store was; close the store, and open \"\(renaming.name)\" first", file: backend.name)
    }
  }

  /// Returns the stored records of a collection whose bytes are not in memory, such as records over a size limit.
  private func bytesOfRefusedRecords(of name: String) async throws(RepositoryError) -> [RecordKey: StoredRecord] {
    let state = self.state
    guard let position = state.names.firstIndex(of: name) else { return [:] }
    var isMissing = false
    try state.collections[position].records.visit { slot in
      isMissing = slot.encoded == nil
      return !isMissing
    }
    // The whole store is read again only if the bytes of a record are missing in memory, which is rare.
    guard isMissing else { return [:] }
    return try await maintain { backend throws(RepositoryError) in
      var found: [RecordKey: StoredRecord] = [:]
      var failure: RepositoryError?
      let slots = state.collections[position].records
      _ = try backend.readAll { record in
        guard record.collection == name, record.value != nil, failure == nil else { return }
        do throws(RepositoryError) { if try slots[record.key]?.encoded == nil { found[record.key] = record } } catch { failure = error }
      }
      if let failure { throw failure }
      return found
    }
  }
}

/// A move of all records of a collection from an old name to a new one, for ``RepositorySchema/renamedFrom``.
struct Renaming: Sendable {
  let oldName: String
  let name: String
  let file: String

  /// Returns whether the old name has records that must move to the new name.
  ///
  /// - Throws: `.unsupported` if both names have records, or if the collection was synced under the old name.
  func needsMove(in state: StoreState) throws(RepositoryError) -> Bool { try needsMove(in: state.collections, state.names) }

  /// Returns whether the old name has records that must move to the new name, in the given collections with their names.
  func needsMove(in collections: [CollectionState], _ names: [String]) throws(RepositoryError) -> Bool {
    func records(_ name: String) -> RecordMap? { names.firstIndex(of: name).map { collections[$0].records } }
    guard let old = records(oldName), old.count > 0 else { return false }
    let count = records(name)?.count ?? 0
    guard count == 0 else {
      throw bothNames(count: count, oldCount: old.count)
    }
    for (position, other) in names.enumerated() where other.hasPrefix(Self.syncPrefix) {
      var isSynced = false
      try collections[position].records.visit { slot in
        // The prefix is compared as UTF-8 bytes, because a combining mark after the slash would merge with the slash into one character and
        // hide the prefix.
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

  /// Returns the error for a move between two names that both have records.
  func bothNames(count: Int, oldCount: Int) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected records under one of the names \(oldName) and \(name), found \(oldCount) under \(oldName) and \(count) under \(name); open each "
        + "under its own name without `renamedFrom:`, save the records of one in the other, and delete them in the first", file: file)
  }

  /// Returns the error for a read-only or shared store, which may not move records, or `nil` for an exclusive store.
  ///
  /// In a shared store, an older version of the app may be running. After a move, the older version would miss its records and write new
  /// records under the old name.
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

  /// Returns the error for a move that failed because the disk was full or the batch was too large.
  func needsRoom(_ error: RepositoryError) -> RepositoryError {
    RepositoryError(
      error.code,
      "expected room to move the records of \(oldName) to \(name), found none: \(error.message); nothing was moved: make room, or open them "
        + "under the name \(oldName)", file: error.file ?? file, underlying: error)
  }

  /// Refuses the move if no record under the old name decodes as the new type.
  ///
  /// At most 8 records under the old name are tried. If none of the tried records decodes as the new type, the records count as those of
  /// another collection and stay. If at least one of the tried records decodes, all records move.
  /// - Throws: `.unsupported` if no tried record decodes.
  func checkType(in state: StoreState, _ fits: (RecordSlot) -> Bool) throws(RepositoryError) {
    guard let position = state.names.firstIndex(of: oldName) else { return }
    var (tried, isFitting) = (0, false)
    try state.collections[position].records.visit { slot in
      // `fits` decodes a new `RecordSlot` with the same bytes, because decoding the stored slot could release the bytes that the move must
      // copy.
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

  /// Prefix of the names of collections in which LarderSync stores its own data.
  ///
  /// The keys of the records in LarderSync's collections begin with the name of a synced collection.
  private static let syncPrefix = "larder.sync."
}

extension PendingState {
  /// Moves all records of a collection to another one in their stored form, together with the deletions in the deletion log.
  ///
  /// - Parameter bytes: Stored records of the collection whose bytes are not in memory.
  /// - Throws: `.unsupported` for a record whose bytes are neither in memory nor in `bytes`. `.corrupted` if a trigger finds its own data
  ///   damaged.
  mutating func move(from old: Int, to new: Int, _ bytes: [RecordKey: StoredRecord]) throws(RepositoryError) {
    for key in try deletionsToMove(from: old) { noteDeletion(of: key, in: new) }
    for slot in try collections[old].records.ordered() {
      // If a migration has replaced the bytes in memory, the bytes are of a newer schema version than the slot (the record in memory).
      // Bytes of a newer schema version cannot be stored with the slot's version.
      var value = slot.encoded.flatMap { $0.isBroughtUp ? nil : $0.data }
      var moved = value.map { RecordSlot(key: slot.key, revision: revision, schemaVersion: slot.schemaVersion, value: $0) }
      // If the record was written after `bytes` was read, its revision differs, and the older bytes must not replace the newer value.
      if let stored = bytes[slot.key], let refused = stored.value, stored.revision == slot.revision {
        let record = StoredRecord(
          collection: names[new], key: slot.key, revision: revision, schemaVersion: stored.schemaVersion, value: refused)
        (moved, value) = (RecordSlot.loaded(record, refused, core.options.limits).0, refused)
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
      // By the schema version `movedVersion`, later openings report the old name as moved and not as emptied by the user.
      try remove(slot.key, in: old, schemaVersion: StoreCore.movedVersion)
    }
  }

  /// Returns the keys of a collection's known deletions, or none if they and the move's own tombstones would exceed the limit.
  private func deletionsToMove(from collection: Int) throws(RepositoryError) -> [RecordKey] {
    let records = collections[collection].records
    // The deletion log also lists a record that was deleted and inserted again. The deletion of such a record must not move, because the
    // record itself moves.
    var deleted: [RecordKey] = []
    for key in core.hub.knownDeletions(in: collection).sorted() where try records[key] == nil { deleted.append(key) }
    return deleted.count + records.count <= core.options.limits.tombstones ? deleted : []
  }

  /// Runs the trigger of a tracked collection (one with a trigger) for a record that moves into the collection.
  private mutating func trackMove(of key: RecordKey, to collection: Int, _ value: StoredValue) throws(RepositoryError) {
    guard let trigger = triggers[collection] else { return }
    let change = TriggeredChange(collection: names[collection], key: key, old: nil, new: value, coder: trigger.coder)
    do throws(RepositoryError) {
      try trigger.trigger.willChange(change, in: &self)
    } catch {
      // The trigger refuses a record that does not decode or has no sync scope. The error is ignored, and such a record moves all the same.
      // The edit that repairs the record is queued for the server later.
      if error.code == .corrupted { throw error }
    }
  }
}
