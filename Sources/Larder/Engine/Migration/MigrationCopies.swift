internal import Foundation
internal import Synchronization

/// Copies of the store's files that this process has made or found, each from before the first record of a newer schema version.
struct MigrationCopies: Sendable {
  /// Paths of the store's copies, by the migration (collection and schema version) before which each was made.
  var files: [MigrationKey: String] = [:]
  /// True if the backend cannot make copies of the store.
  var isUnsupported = false

  /// Number of file names to try for one copy of the store.
  ///
  /// Other files in the folder may already have some of the names of copies.
  static let nameLimit = 100

  /// Length in bytes of the longest suffix that a backend appends to the store's file name for its auxiliary files.
  private static let longestSuffix = 13

  /// Returns the path for a copy of the store from before a migration, with "-2", "-3" and so on if `number` is above 1.
  ///
  /// If the file name would become too long, the part from the store's file name is shortened.
  static func file(_ store: String, collection: String, version: Int, number: Int = 1) -> String {
    let file = URL(fileURLWithPath: store, isDirectory: false)
    let suffix = "-before-\(collection)-v\(version)" + (number == 1 ? "" : "-\(number)")
    let name = FileName.shortened(file.lastPathComponent, leaving: suffix.utf8.count + longestSuffix) + suffix
    return file.deletingLastPathComponent().appending(path: name, directoryHint: .notDirectory).path
  }
}

extension StoreCore {
  /// Copies the store to a file before a collection gets its first record of a newer schema version, unless such a copy exists.
  ///
  /// Must run on the store's executor, while a batch is staged. No record of the batch is written yet, and no other process can write to a
  /// shared store. The copy therefore holds the records as an older version of the app left them, and that version can open the copy.
  /// - Parameter target: Collection to which the records move in the same commit, or `nil` without a move. If `target` is set, the copy is
  ///   named after the target collection.
  /// - Throws: The error that prevented the copy of the store. The write that needed the copy must then fail.
  func copyStore(before version: Int, of collection: Int, movingTo target: Int? = nil) throws(RepositoryError) {
    let state = self.state
    let name = state.names[target ?? collection]
    // Only a store that is kept in files has a path as its name. A collection without records has no record that a copy could preserve.
    guard options.migration.backup == .beforeFirstRewrite, backend.name.hasPrefix("/"), state.collections[collection].records.count > 0
    else { return }
    let key = MigrationKey(collection: target ?? collection, version: version)
    let known = migrations.knownCopies
    if known.isUnsupported { return }
    // If a write failed after the copy was made, the repeated write reuses that copy. In an exclusive store no other process can have
    // written since the copy was made.
    if known.files[key] != nil, options.access == .exclusive { return }
    var copy = findCopy(before: version, of: collection, named: name, in: state, known)
    if copy == nil { copy = try makeCopy(before: version, of: name) }
    guard let made = copy else { return }
    let file = replaceSuperseded(by: made, before: version, of: collection, named: name, in: state)
    migrations.note(copy: file, for: key)
  }

  /// Returns the newest copy that an interrupted migration has made, for a collection that already holds migrated records.
  ///
  /// Must not run on the store's executor, because reading a copy takes as long as reading the store.
  func copyOfEarlierRun(before version: Int, of collection: Int) -> String? {
    let state = self.state
    let name = state.names[collection]
    guard options.migration.backup == .beforeFirstRewrite, backend.name.hasPrefix("/") else { return nil }
    var newest: (commit: Revision, file: String)?
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      var isOlder = true
      do throws(RepositoryError) {
        let report = try readRecords(of: file, in: state) { record, position in
          // A file with migrated records was made after the migration began, so it is not a copy from before the migration.
          if position == collection, record.schemaVersion >= version { isOlder = false }
        }
        guard isOlder, report.storeID == openReport.storeID, report.commit.number <= state.commit else { continue }
        if newest.map({ $0.commit < report.commit }) ?? true { newest = (report.commit, file) }
      } catch {
        // Copies are named with ascending numbers, so no copy has a higher number than the first unused name.
        if error.code == .dataMissing || error.code == .unsupported { break }
        // If the file with this number is unreadable or foreign, the copy may have the next number.
      }
    }
    return newest?.file
  }

  /// Returns the path of an existing copy whose records equal those of the store, or `nil` if there is none.
  private func findCopy(
    before version: Int, of collection: Int, named name: String, in state: StoreState, _ known: MigrationCopies
  ) -> String? {
    // If another collection of this store was migrated before, only the copy from before that migration is fully readable by the older app.
    // If that copy has all of this collection's records, no second copy is made.
    for file in Set(known.files.values).sorted() where isCopy(file, of: state, collection, lookingAt: [collection]) == true { return file }
    let all = Set(state.collections.indices)
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      guard let isCopy = isCopy(file, of: state, collection, lookingAt: all) else { break }
      if isCopy { return file }
    }
    // If the process was killed between two migrations, `known` lacks the copy that the first migration made. The copy may therefore have
    // the file name for the migration of another collection.
    for other in state.collections.indices where other != collection {
      let file = MigrationCopies.file(
        backend.name, collection: state.names[other], version: state.collections[other].records.newestSchemaVersion)
      if isCopy(file, of: state, collection, lookingAt: all) == true { return file }
    }
    return nil
  }

  /// Returns whether a file is a copy of this store, or `nil` if there is no file or if the backend cannot read copies.
  ///
  /// The records of `collection` must equal the store's records. The records of the collections `others` must equal the store's records
  /// apart from migrations.
  private func isCopy(_ file: String, of state: StoreState, _ collection: Int, lookingAt others: Set<Int>) -> Bool? {
    var counts: [Int: Int] = [:]
    // The checksums are added up, because the two files may hold the same records in different orders.
    var (isSame, sum) = (true, UInt64(0))
    var failure: RepositoryError?
    do throws(RepositoryError) {
      let report = try readRecords(of: file, in: state) { record, index in
        guard isSame, failure == nil, others.contains(index) else { return }
        counts[index, default: 0] += 1
        if index == collection { sum &+= record.mixedChecksum }
        do throws(RepositoryError) {
          let slot = try state.collections[index].records[record.key]
          isSame = slot.map { $0.isUnchanged(since: record.revision) && record.schemaVersion <= $0.schemaVersion } ?? false
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      guard isSame, report.storeID == openReport.storeID, report.commit.number <= state.commit,
        others.allSatisfy({ counts[$0, default: 0] == state.collections[$0].records.count })
      else { return false }
      // A store that was restored from an older backup and then written may have the same revisions with other values. Equal sums of
      // checksums show that the values are equal too.
      var ownSum = UInt64(0)
      _ = try readRecords(of: backend.name, in: state) { record, index in
        if index == collection { ownSum &+= record.mixedChecksum }
      }
      return sum == ownSum
    } catch {
      return error.code == .dataMissing || error.code == .unsupported ? nil : false
    }
  }

  /// Passes each record of a copy or of the store's own file to `visit`, together with the position of the record's collection.
  private func readRecords(
    of file: String, in state: StoreState, _ visit: (StoredRecord, Int) -> Void
  ) throws(RepositoryError) -> OpenReport {
    let positions = Dictionary(zip(state.names, state.names.indices)) { first, _ in first }
    return try backend.readCopy(at: URL(fileURLWithPath: file, isDirectory: false)) { record in
      if record.value != nil, let position = positions[record.collection] { visit(record, position) }
    }
  }

  /// Renames a copy of the store to the name of an older copy that it supersedes, so that each migration leaves only one copy.
  ///
  /// If the process is killed after the copy and before the first migrated record, the copy stays. If an older app writes to the store
  /// after the copy, the next run of the migration makes a newer copy.
  /// - Returns: The path of the copy after the renaming.
  private func replaceSuperseded(
    by file: String, before version: Int, of collection: Int, named name: String, in state: StoreState
  ) -> String {
    for number in 1..<MigrationCopies.nameLimit {
      let other = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      if other == file { break }
      guard isSuperseded(other, of: state, collection, before: version) else { continue }
      do throws(RepositoryError) {
        let files = POSIXFileSystem()
        // An auxiliary file beside the older copy belongs to a process that has the copy open, or was killed with it open. If the new copy
        // took the name of the older copy, it would lie beside an auxiliary file that belongs to other contents.
        for ending in ["-wal", "-shm", "-journal", "-lock"] where try files.status(of: other + ending) != nil { return file }
        try files.rename(file, to: other)
        // If power fails after the rename and before the sync of the folder, the older copy may come back under its name.
        // A failed sync leaves the renamed file where it is, so the error changes nothing.
        do throws(RepositoryError) { try files.syncDirectory(URL(fileURLWithPath: other).deletingLastPathComponent().path) } catch {}
        return other
      } catch {
        return file  // both copies stay under their own names, and both can be opened
      }
    }
    return file
  }

  /// Returns whether a file is a copy of an earlier state of this store, and no collection was migrated since that copy.
  ///
  /// The file must have the same history of commits as the store. A store that was restored from a backup has another history. Every record
  /// that is unchanged since the copy must be in the copy byte for byte. Every changed record must have a newer revision than the copy's
  /// last commit.
  private func isSuperseded(_ file: String, of state: StoreState, _ collection: Int, before version: Int) -> Bool {
    var versions: [Int: Int] = [:]
    var (same, own) = (UInt64(0), UInt64(0))
    var oldestChange = UInt64.max
    var failure: RepositoryError?
    do throws(RepositoryError) {
      let report = try readRecords(of: file, in: state) { record, index in
        versions[index] = max(versions[index] ?? 0, record.schemaVersion)
        do throws(RepositoryError) {
          guard failure == nil, let slot = try state.collections[index].records[record.key] else { return }
          if slot.revision == record.revision {
            same &+= record.mixedChecksum
          } else {
            oldestChange = min(oldestChange, slot.revision.number)
          }
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      guard report.storeID == openReport.storeID, report.commit.number < state.commit, oldestChange > report.commit.number,
        versions[collection, default: version] < version
      else { return false }
      for (index, version) in versions where state.collections[index].records.newestSchemaVersion > version { return false }
      _ = try readRecords(of: backend.name, in: state) { record, _ in
        if record.revision <= report.commit { own &+= record.mixedChecksum }
      }
      return same == own
    } catch {
      return false
    }
  }

  /// Copies the store to a new file and returns the file's path, or `nil` if the backend cannot make copies.
  private func makeCopy(before version: Int, of name: String) throws(RepositoryError) -> String? {
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      do throws(RepositoryError) {
        try backend.backup(to: URL(fileURLWithPath: file, isDirectory: false))
        return file
      } catch {
        notePoison(error)
        // `.unsupported` with the copy's path concerns this path only. Any other `.unsupported` means that the backend cannot make copies
        // at all.
        if error.code == .unsupported, error.file?.hasSuffix(URL(fileURLWithPath: file, isDirectory: false).lastPathComponent) != true {
          migrations.noteCopiesAreUnsupported()
          return nil
        }
        // If another file has this name, the next number in the name is tried.
        if error.code != .alreadyExists { throw .copyFailed(error, file) }
      }
    }
    let file = MigrationCopies.file(backend.name, collection: name, version: version)
    throw .copyFailed(RepositoryError(.inputOutput, "there are \(MigrationCopies.nameLimit) other files of this name", file: file), file)
  }
}

extension RepositoryError {
  /// Returns the error of a write that failed because the store could not be copied before it.
  ///
  /// Codes that stand for a refused record become `.inputOutput`, so that callers do not take the record for the cause.
  fileprivate static func copyFailed(_ error: RepositoryError, _ file: String) -> RepositoryError {
    let passed: [Code] = [.full, .protectedDataUnavailable, .corrupted, .dataMissing, .locked, .poisoned, .outcomeUnknown, .closed]
    return RepositoryError(
      passed.contains(error.code) ? error.code : .inputOutput,
      "the copy before the first record of a newer version failed (\(error.message)), so nothing was written; make room for it, or decline it "
        + "with StoreOptions(migration: .init(backup: .declined))", file: file, underlying: error)
  }
}

extension StoredRecord {
  /// Checksum of the record, spread over 64 bits so that the sums of different sets of records differ.
  fileprivate var mixedChecksum: UInt64 {
    // The constants are the multipliers of the hash SplitMix64. In a sum of plain 32-bit checksums, the changes of two records could cancel
    // out.
    let hash = (UInt64(checksum) &+ 0x9E37_79B9) &* 0xBF58_476D_1CE4_E5B9
    return (hash ^ hash >> 29) &* 0x94D0_49BB_1331_11EB
  }
}
