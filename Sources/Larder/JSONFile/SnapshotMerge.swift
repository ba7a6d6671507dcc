internal import Foundation

/// What the next snapshot will hold: the lines of the old one and the changes of the journal, merged in the order of addresses.
///
/// Lines that did not change are carried over as they are, so that a record which no version of the app can decode survives.
struct SnapshotMerge {
  /// The bytes of the old snapshot.
  let old: Data
  /// What the old snapshot says of itself.
  let header: SnapshotHeader
  /// The permission bits of the old snapshot.
  let mode: UInt16
  let entries: [Entry]
  /// How many of the entries are tombstones.
  let tombstoneCount: Int
  /// The newest deletion that was forgotten because there were too many; 0 when none was.
  let tombstonesSince: UInt64

  enum Entry {
    case line(Range<Int>, checksum: UInt32, deletion: UInt64?)
    case change(StoredRecord)

    /// The revision of a tombstone; `nil` for a record.
    var deletion: UInt64? {
      switch self {
      case .line(_, _, let deletion): deletion
      case .change(let record): record.value == nil ? record.revision.number : nil
      }
    }

    func write(to writer: inout SnapshotWriter, from old: Data) throws(RepositoryError) {
      switch self {
      case .line(let range, let checksum, _):
        try writer.add(line: old[(old.startIndex + range.lowerBound)..<(old.startIndex + range.upperBound)], checksum: checksum)
      case .change(let record): try writer.add(record)
      }
    }
  }

  /// Reads the old snapshot and merges the changes in.
  /// - Throws: `.corrupted` when the snapshot was damaged since it was opened.
  init(
    _ reader: SnapshotReader, mode: UInt16, changes: [RecordAddress: StoredRecord], tombstoneLimit: Int
  ) throws(RepositoryError) {
    old = reader.data
    self.mode = mode
    let changed = changes.values.sorted { $0.address < $1.address }
    var next = 0
    var entries: [Entry] = []
    header = try reader.read { line throws(RepositoryError) in
      let address = line.record.address
      while next < changed.count, changed[next].address < address {
        entries.append(.change(changed[next]))
        next += 1
      }
      guard next == changed.count || changed[next].address != address else { return }
      let deletion = line.record.value == nil ? line.record.revision.number : nil
      entries.append(.line(line.text, checksum: line.checksum, deletion: deletion))
    }
    entries += changed[next...].map(Entry.change)

    let deletions = entries.compactMap(\.deletion)
    if deletions.count > tombstoneLimit {
      let forgotten = deletions.sorted(by: >)[tombstoneLimit]
      entries.removeAll { $0.deletion.map { $0 <= forgotten } ?? false }
      tombstonesSince = forgotten
    } else {
      tombstonesSince = 0
    }
    self.entries = entries
    tombstoneCount = entries.count { $0.deletion != nil }
  }
}

extension JSONFileStore {
  /// Reads the snapshot file again and merges the journal's changes.
  func readMerged() throws(RepositoryError) -> SnapshotMerge {
    guard let file = try fileSystem.open(paths.snapshot, writable: false) else {
      throw RepositoryError(.dataMissing, "the main file is gone while its store is open", file: paths.snapshot)
    }
    let data = try file.read(at: 0, count: file.size())
    let mode = try file.mode()
    try file.close()
    let reader = SnapshotReader(data: data, file: paths.snapshot, comparesChecksums: tuning.comparesChecksums)
    let merge = try SnapshotMerge(reader, mode: mode, changes: changes, tombstoneLimit: options.limits.tombstones)
    guard merge.header == header else {
      throw RepositoryError(.corrupted, "another file was put in the place of the main file", file: paths.snapshot, offset: 0)
    }
    return merge
  }

  /// Reads the journal file again, and compares what it holds with what was committed.
  func verifyJournal() throws(RepositoryError) {
    guard let journal else { return }
    guard let file = try fileSystem.open(paths.journal, writable: false) else {
      throw RepositoryError(.dataMissing, "the journal is gone while its store is open", file: paths.journal)
    }
    let data = try file.read(at: 0, count: file.size())
    try file.close()
    let reader = JournalReader(data: data, file: paths.journal, comparesChecksums: tuning.comparesChecksums)
    let contents = try reader.read { _ in }
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, contents.tail == .clean else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
