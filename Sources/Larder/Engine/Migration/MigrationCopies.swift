internal import Foundation
internal import Synchronization

/// The copies of a store that this process has made or found, each before the first record of a newer schema version.
struct MigrationCopies: Sendable {
  /// The paths, by the migration that needed the copy.
  var files: [MigrationKey: String] = [:]
  /// Whether the backend has said that it cannot be copied.
  var isUnsupported = false

  /// The number of names that are tried for a copy of one version; other files may have some of them.
  static let nameLimit = 100

  /// The bytes that a backend may put behind a name, for the files beside a store.
  private static let longestSuffix = 13

  /// Returns the path of a copy: the first name, or the one with a number; that of the store is shortened in it where it would be too long.
  static func file(_ store: String, _ collection: String, _ version: Int, _ number: Int = 1) -> String {
    let file = URL(fileURLWithPath: store, isDirectory: false)
    let suffix = "-before-\(collection)-v\(version)" + (number == 1 ? "" : "-\(number)")
    let name = FileName.shortened(file.lastPathComponent, leaving: suffix.utf8.count + longestSuffix) + suffix
    return file.deletingLastPathComponent().appending(path: name, directoryHint: .notDirectory).path
  }
}

extension StoreCore {
  /// Copies the store before the first record of a newer schema version of a collection is written, unless there is such a copy.
  ///
  /// On the executor only, while a batch is staged: nothing of it is written yet, and in a shared store no other process can write
  /// either. So a copy holds what the older program has left, and that program can open it.
  /// - Parameter target: The collection that the records move to in the same commit, which the copy is then named after.
  /// - Throws: what prevented the copy; the write that needed it must fail.
  func copyStore(before version: Int, of collection: Int, movingTo target: Int? = nil) throws(RepositoryError) {
    let state = self.state
    let name = state.names[target ?? collection]
    guard options.migration.backup == .beforeFirstRewrite, backend.name.hasPrefix("/"), state.collections[collection].records.count > 0
    else { return }
    let key = MigrationKey(collection: target ?? collection, version: version)
    let known = migrations.knownCopies
    if known.isUnsupported { return }
    // A write that failed after the copy was made is tried again: what has changed since was changed by this process.
    if known.files[key] != nil, options.access == .exclusive { return }
    var copy = findCopy(before: version, of: collection, named: name, in: state, known)
    if copy == nil { copy = try makeCopy(before: version, of: name) }
    guard let made = copy else { return }
    let file = replaceSuperseded(by: made, before: version, of: collection, named: name, in: state)
    migrations.note(copy: file, for: key)
  }

  /// The copy that an interrupted run has made, of a collection that holds records of the newer version already; the newest, if there are
  /// several.
  ///
  /// Not on the executor: it may take as long as reading the store.
  func copyOfEarlierRun(before version: Int, of collection: Int) -> String? {
    let state = self.state
    let name = state.names[collection]
    guard options.migration.backup == .beforeFirstRewrite, backend.name.hasPrefix("/") else { return nil }
    var newest: (commit: Revision, file: String)?
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, name, version, number)
      var isOlder = true
      do throws(RepositoryError) {
        let report = try readRecords(of: file, in: state) { record, position in
          if position == collection, record.schemaVersion >= version { isOlder = false }
        }
        guard isOlder, report.storeID == openReport.storeID, report.commit.number <= state.commit else { continue }
        if newest.map({ $0.commit < report.commit }) ?? true { newest = (report.commit, file) }
      } catch {
        if error.code == .dataMissing || error.code == .unsupported { break }
        // Something else has the name.
      }
    }
    return newest?.file
  }

  /// A copy that holds what the store holds.
  private func findCopy(
    before version: Int, of collection: Int, named name: String, in state: StoreState, _ known: MigrationCopies
  ) -> String? {
    // Another collection of this store has just been migrated. Its copy is the only one that the older program can read all of, so it
    // serves if nothing is missing here.
    for file in Set(known.files.values).sorted() where isCopy(file, of: state, collection, lookingAt: [collection]) == true { return file }
    let all = Set(state.collections.indices)
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, name, version, number)
      guard let isCopy = isCopy(file, of: state, collection, lookingAt: all) else { break }
      if isCopy { return file }
    }
    // The same, where a run was killed between the two migrations.
    for other in state.collections.indices where other != collection {
      let file = MigrationCopies.file(backend.name, state.names[other], state.collections[other].records.newestSchemaVersion)
      if isCopy(file, of: state, collection, lookingAt: all) == true { return file }
    }
    return nil
  }

  /// Whether a file is a copy of this store: with the records of one collection as they are now, and with those of
  /// others, if they are to be looked at, as they were before migrations alone; `nil` when there is no file, or none
  /// can be read.
  private func isCopy(_ file: String, of state: StoreState, _ collection: Int, lookingAt others: Set<Int>) -> Bool? {
    var counts: [Int: Int] = [:]
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
      // A store that was put back to an earlier time, and has gone another way since, may have the same revisions.
      var ownSum = UInt64(0)
      _ = try readRecords(of: backend.name, in: state) { record, index in
        if index == collection { ownSum &+= record.mixedChecksum }
      }
      return sum == ownSum
    } catch {
      return error.code == .dataMissing || error.code == .unsupported ? nil : false
    }
  }

  /// Hands over the records of a copy, or of the store's own file, each with the position of its collection.
  private func readRecords(
    of file: String, in state: StoreState, _ visit: (StoredRecord, Int) -> Void
  ) throws(RepositoryError) -> OpenReport {
    let positions = Dictionary(zip(state.names, state.names.indices)) { first, _ in first }
    return try backend.readCopy(at: URL(fileURLWithPath: file, isDirectory: false)) { record in
      if record.value != nil, let position = positions[record.collection] { visit(record, position) }
    }
  }

  /// Gives a copy the name of one that it supersedes, if there is one, so that one copy stays for each migration.
  ///
  /// A run that was killed after its copy and before its first record leaves one that holds less than the store once
  /// another program has written.
  /// - Returns: The path that the copy has then.
  private func replaceSuperseded(
    by file: String, before version: Int, of collection: Int, named name: String, in state: StoreState
  ) -> String {
    for number in 1..<MigrationCopies.nameLimit {
      let other = MigrationCopies.file(backend.name, name, version, number)
      if other == file { break }
      guard isSuperseded(other, of: state, collection, before: version) else { continue }
      do throws(RepositoryError) {
        let files = POSIXFileSystem()
        // Files beside it belong to a process that has it open, or was killed while it had.
        for ending in ["-wal", "-shm", "-journal", "-lock"] where try files.status(of: other + ending) != nil { return file }
        try files.rename(file, to: other)
        try files.syncDirectory(URL(fileURLWithPath: other).deletingLastPathComponent().path)
        return other
      } catch {
        return file  // both stay, and both can be opened
      }
    }
    return file
  }

  /// Whether a file is a copy of an earlier state of this store, which holds no record of a newer version than the copy does.
  ///
  /// A copy of another history (of a store that was put back to an earlier time) is none: whatever the store has had
  /// since before the copy must be in it, byte for byte, and what differs must be newer.
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

  /// Copies the store to a new file; `nil` when the backend has no files to copy.
  private func makeCopy(before version: Int, of name: String) throws(RepositoryError) -> String? {
    for number in 1...MigrationCopies.nameLimit {
      let file = MigrationCopies.file(backend.name, name, version, number)
      do throws(RepositoryError) {
        try backend.backup(to: URL(fileURLWithPath: file, isDirectory: false))
        return file
      } catch {
        notePoison(error)
        // An error that names the copy refuses its path.
        if error.code == .unsupported, error.file?.hasSuffix(URL(fileURLWithPath: file, isDirectory: false).lastPathComponent) != true {
          migrations.noteCopiesAreUnsupported()
          return nil
        }
        if error.code != .alreadyExists { throw .copyFailed(error, file) }
      }
    }
    let file = MigrationCopies.file(backend.name, name, version)
    throw .copyFailed(RepositoryError(.inputOutput, "there are \(MigrationCopies.nameLimit) other files of this name", file: file), file)
  }
}

extension RepositoryError {
  /// The error of a write for which the store could not be copied: with a code that cannot be taken for an answer about the record.
  fileprivate static func copyFailed(_ error: RepositoryError, _ file: String) -> RepositoryError {
    let passed: [Code] = [.full, .protectedDataUnavailable, .corrupted, .dataMissing, .locked, .poisoned, .outcomeUnknown, .closed]
    return RepositoryError(
      passed.contains(error.code) ? error.code : .inputOutput,
      "the copy before the first record of a newer version failed (\(error.message)), so nothing was written; make room for it, or decline it "
        + "with StoreOptions(migration: .init(backup: .declined))", file: file, underlying: error)
  }
}

extension StoredRecord {
  /// The checksum spread over 64 bits, so that sums of different records differ.
  fileprivate var mixedChecksum: UInt64 {
    let hash = (UInt64(checksum) &+ 0x9E37_79B9) &* 0xBF58_476D_1CE4_E5B9
    return (hash ^ hash >> 29) &* 0x94D0_49BB_1331_11EB
  }
}
