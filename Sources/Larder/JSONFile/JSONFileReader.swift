internal import Foundation

/// Reads the files of a JSON store as they are: locks, syncs, cuts and removes nothing.
///
/// A writer may be at work. What it appends to the journal meanwhile is a torn tail here, and is left out; a checkpoint puts another
/// snapshot in place, which is noticed by the generation, and then all is read again.
struct JSONFileReader {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions

  /// How often files that change meanwhile are read again.
  private static let attempts = 5

  /// All records and tombstones as of one commit.
  func run() throws(RepositoryError) -> ([StoredRecord], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      guard let snapshot = try read(paths.snapshot) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: paths.snapshot)
      }
      let journal = try read(paths.journal)
      do throws(RepositoryError) {
        let result = try records(snapshot, journal)
        if try read(paths.snapshot, prefix: Self.headerSize) == snapshot.prefix(Self.headerSize) { return result }
      } catch {
        // Damage that is there in both readings is damage, and not a writer's work.
        if try read(paths.snapshot) == snapshot, try read(paths.journal) == journal { throw error }
        failure = error
      }
    }
    throw failure ?? RepositoryError(.inputOutput, "the files change faster than they can be read", file: paths.snapshot)
  }

  func verify() -> VerifyReport {
    do throws(RepositoryError) {
      let (records, report) = try run()
      let recordCount = records.count { $0.value != nil }
      return VerifyReport(commit: report.commit, recordCount: recordCount, tombstoneCount: records.count - recordCount)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  /// Enough to hold the header, and with it the generation.
  private static let headerSize = 512

  private func read(_ path: String, prefix: Int? = nil) throws(RepositoryError) -> Data? {
    guard let file = try fileSystem.open(path, writable: false) else { return nil }
    let size = try file.size()
    let data = try file.read(at: 0, count: min(size, prefix ?? size))
    try file.close()
    return data
  }

  private func records(_ snapshot: Data, _ journal: Data?) throws(RepositoryError) -> ([StoredRecord], OpenReport) {
    let reader = MainFileReader(data: snapshot, file: paths.snapshot)
    let header = try reader.readHeader()
    let replay = try journal.map { data throws(RepositoryError) in
      try JSONFileReplay(
        data, over: header, paths: paths, recovery: options.recovery)
    }
    let changes = replay?.changes ?? [:]
    var records: [StoredRecord] = []
    _ = try reader.read { line throws(RepositoryError) in
      if changes.isEmpty || changes[line.record.address] == nil { records.append(line.record) }
    }
    records += changes.values
    let report = OpenReport(
      storeID: header.storeID, commit: Revision(max(header.commit, replay?.contents.lastCommit ?? 0)), isNew: false,
      replayedCommits: replay?.commitCount ?? 0, tombstoneHorizon: Revision(header.tombstonesSince))
    return (records, report)
  }
}
