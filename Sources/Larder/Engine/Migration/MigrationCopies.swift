internal import Foundation
internal import Synchronization

/// File copies of a store that this process has made or found, each from before the first record of a newer schema version.
struct MigrationCopies: Sendable {
  /// Paths of the store's copies, by the migration that needed them.
  var files: [MigrationKey: String] = [:]
  /// True if the backend cannot make copies.
  var isUnsupported = false

  /// Number of file names to try for a copy of the store, since other files may have some of them.
  static let nameLimit = 100

  /// Number of bytes that a backend may append to a store's file name, for the files beside it.
  private static let longestSuffix = 13

  /// Returns the path of a store's copy from before a migration, with a number from the second name on.
  ///
  /// The store's file name is shortened in it if it would be too long.
  static func file(_ store: String, collection: String, version: Int, number: Int = 1) -> String {
    let file = URL(fileURLWithPath: store, isDirectory: false)
    let suffix = "-before-\(collection)-v\(version)" + (number == 1 ? "" : "-\(number)")
    let name = FileName.shortened(file.lastPathComponent, leaving: suffix.utf8.count + longestSuffix) + suffix
    return file.deletingLastPathComponent().appending(path: name, directoryHint: .notDirectory).path
  }
}

extension StoreCore {
  /// Copies the store to a file before the first record of a newer schema version of a collection is written, unless a copy exists.
  ///
  /// Runs on the executor only, while a batch is staged. Nothing of the batch is written yet, and no other process can write to a shared
  /// store. So the copy holds the records that the older program has left, and that program can open it.
  /// - Parameter target: Collection to which the records move in the same commit. The copy is then named after it.
  /// - Throws: The error that prevented the copy. The write that needed it must fail.
  func copyStore(before version: Int, of collection: Int, movingTo target: Int? = nil) throws(RepositoryError) {
    let state = self.state
    let name = state.names[target ?? collection]
    // Only a store in files has a path. A collection without records has nothing to keep.
    guard options.migration.backup == .beforeFirstRewrite, backend.name.hasPrefix("/"), state.collections[collection].records.count > 0
    else { return }
    let key = MigrationKey(collection: target ?? collection, version: version)
    let known = migrations.knownCopies
    if known.isUnsupported { return }
    // A write that failed after its copy is tried again with the same copy. In an exclusive store only this process has written since.
    if known.files[key] != nil, options.access == .exclusive { return }
    var copy = findCopy(before: version, of: collection, named: name, in: state, known)
    if copy == nil { copy = try makeCopy(before: version, of: name) }
    guard let made = copy else { return }
    let file = replaceSuperseded(by: made, before: version, of: collection, named: name, in: state)
    migrations.note(copy: file, for: key)
  }

  /// Returns the newest copy that an interrupted run has made, for a collection that holds records of the newer version already.
  ///
  /// Not for the executor, since it may take as long as reading the store.
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
          // A file with records of the newer version is no copy from before the migration.
          if position == collection, record.schemaVersion >= version { isOlder = false }
        }
        guard isOlder, report.storeID == openReport.storeID, report.commit.number <= state.commit else { continue }
        if newest.map({ $0.commit < report.commit }) ?? true { newest = (report.commit, file) }
      } catch {
        // Names are used in ascending order, so no copy follows the first free one.
        if error.code == .dataMissing || error.code == .unsupported { break }
        // Another file has the name, and the copy may have the next one.
      }
    }
    return newest?.file
  }

  /// Returns the path of a copy that holds the same records as the store, or `nil` if there is none.
  private func findCopy(
    before version: Int, of collection: Int, named name: String, in state: StoreState, _ known: MigrationCopies
  ) -> String? {
    // Another collection of this store may have been migrated just before. Only its copy can be read completely by the older program, so it
    // serves for this collection too, if it has all of its records.
    for file in Set(known.files.values).sorted() where isCopy(file, of: state, collection, lookingAt: [collection]) == true { return file }
    let all = Set(state.collections.indices)
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      guard let isCopy = isCopy(file, of: state, collection, lookingAt: all) else { break }
      if isCopy { return file }
    }
    // The same for a copy that this process does not list, because a run was killed between the two migrations.
    for other in state.collections.indices where other != collection {
      let file = MigrationCopies.file(
        backend.name, collection: state.names[other], version: state.collections[other].records.newestSchemaVersion)
      if isCopy(file, of: state, collection, lookingAt: all) == true { return file }
    }
    return nil
  }

  /// Returns whether a file is a copy of this store, or `nil` if there is no file or copies cannot be read.
  ///
  /// The records of `collection` must be the same as now. Those of `others` may differ by migrations alone.
  private func isCopy(_ file: String, of state: StoreState, _ collection: Int, lookingAt others: Set<Int>) -> Bool? {
    var counts: [Int: Int] = [:]
    // A sum, because the order of records in the two files may differ.
    var (isSame, sum) = (true, UInt64(0))
    do throws(RepositoryError) {
      let report = try readRecords(of: file, in: state) { record, index in
        guard isSame, others.contains(index) else { return }
        counts[index, default: 0] += 1
        if index == collection { sum &+= record.mixedChecksum }
        let slot = state.collections[index].records[record.key]
        isSame = slot.map { $0.isUnchanged(since: record.revision) && record.schemaVersion <= $0.schemaVersion } ?? false
      }
      guard isSame, report.storeID == openReport.storeID, report.commit.number <= state.commit,
        others.allSatisfy({ counts[$0, default: 0] == state.collections[$0].records.count })
      else { return false }
      // A store that was put back to an earlier time and written since may have equal revisions with other values.
      var ownSum = UInt64(0)
      _ = try readRecords(of: backend.name, in: state) { record, index in
        if index == collection { ownSum &+= record.mixedChecksum }
      }
      return sum == ownSum
    } catch {
      return error.code == .dataMissing || error.code == .unsupported ? nil : false
    }
  }

  /// Passes the records of a copy, or of the store's own file, to `visit`, each with the position of its collection.
  private func readRecords(
    of file: String, in state: StoreState, _ visit: (StoredRecord, Int) -> Void
  ) throws(RepositoryError) -> OpenReport {
    let positions = Dictionary(zip(state.names, state.names.indices)) { first, _ in first }
    return try backend.readCopy(at: URL(fileURLWithPath: file, isDirectory: false)) { record in
      if record.value != nil, let position = positions[record.collection] { visit(record, position) }
    }
  }

  /// Renames a copy of the store to the name of an older copy that it supersedes, so that each migration keeps one copy.
  ///
  /// A run that was killed after its copy and before its first record leaves a copy. It holds less than the store once another program has
  /// written.
  /// - Returns: The path of the copy afterwards.
  private func replaceSuperseded(
    by file: String, before version: Int, of collection: Int, named name: String, in state: StoreState
  ) -> String {
    for number in 1..<MigrationCopies.nameLimit {
      let other = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      if other == file { break }
      guard isSuperseded(other, of: state, collection, before: version) else { continue }
      do throws(RepositoryError) {
        let files = POSIXFileSystem()
        // Files beside the older copy belong to a process that has it open, or was killed with it open. They do not fit the new copy.
        for ending in ["-wal", "-shm", "-journal", "-lock"] where try files.status(of: other + ending) != nil { return file }
        try files.rename(file, to: other)
        // Without it, power loss could bring the older copy back under this name.
        try files.syncDirectory(URL(fileURLWithPath: other).deletingLastPathComponent().path)
        return other
      } catch {
        return file  // both stay, and both can be opened
      }
    }
    return file
  }

  /// Returns whether a file is a copy of an earlier state of this store, and no collection was migrated since.
  ///
  /// A copy from another history, as of a store that was put back to an earlier time, does not count. Every record that the store has had
  /// since before the copy must be in the copy byte for byte, and every record that differs must be newer.
  private func isSuperseded(_ file: String, of state: StoreState, _ collection: Int, before version: Int) -> Bool {
    var versions: [Int: Int] = [:]
    var (same, own) = (UInt64(0), UInt64(0))
    var oldestChange = UInt64.max
    do throws(RepositoryError) {
      let report = try readRecords(of: file, in: state) { record, index in
        versions[index] = max(versions[index] ?? 0, record.schemaVersion)
        guard let slot = state.collections[index].records[record.key] else { return }
        if slot.revision == record.revision {
          same &+= record.mixedChecksum
        } else {
          oldestChange = min(oldestChange, slot.revision.number)
        }
      }
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

  /// Copies the store to a new file and returns its path, or `nil` if the backend cannot make copies.
  private func makeCopy(before version: Int, of name: String) throws(RepositoryError) -> String? {
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, collection: name, version: version, number: number)
      do throws(RepositoryError) {
        try backend.backup(to: URL(fileURLWithPath: file, isDirectory: false))
        return file
      } catch {
        notePoison(error)
        // `.unsupported` for the path of the copy refuses this path only. Any other says that the backend has no copies at all.
        if error.code == .unsupported, error.file?.hasSuffix(URL(fileURLWithPath: file, isDirectory: false).lastPathComponent) != true {
          migrations.noteCopiesAreUnsupported()
          return nil
        }
        // Another file has the name, so the next name is tried.
        if error.code != .alreadyExists { throw .copyFailed(error, file) }
      }
    }
    let file = MigrationCopies.file(backend.name, collection: name, version: version)
    throw .copyFailed(RepositoryError(.inputOutput, "there are \(MigrationCopies.nameLimit) other files of this name", file: file), file)
  }
}

extension RepositoryError {
  /// Returns the error of a write for which the store could not be copied.
  ///
  /// Its code cannot be mistaken for a refusal of the record.
  fileprivate static func copyFailed(_ error: RepositoryError, _ file: String) -> RepositoryError {
    let passed: [Code] = [.full, .protectedDataUnavailable, .corrupted, .dataMissing, .locked, .poisoned, .outcomeUnknown, .closed]
    return RepositoryError(
      passed.contains(error.code) ? error.code : .inputOutput,
      "the copy before the first record of a newer version failed (\(error.message)), so nothing was written; make room for it, or decline it "
        + "with StoreOptions(migration: .init(backup: .declined))", file: file, underlying: error)
  }
}

extension StoredRecord {
  /// Checksum of the record, spread over 64 bits so that sums of different records differ.
  fileprivate var mixedChecksum: UInt64 {
    // Multipliers of SplitMix64. In a sum of plain 32-bit checksums, two changes could cancel each other.
    let hash = (UInt64(checksum) &+ 0x9E37_79B9) &* 0xBF58_476D_1CE4_E5B9
    return (hash ^ hash >> 29) &* 0x94D0_49BB_1331_11EB
  }
}
