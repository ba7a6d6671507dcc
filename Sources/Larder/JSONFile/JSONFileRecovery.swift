internal import Foundation

/// Writes what opening a JSON store has to write: the second step, after the store has accepted what was read.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning

  /// Creates the store, or cuts and renews its journal.
  ///
  /// What it throws leaves nothing lost, and the locks held.
  /// - Parameter report: What was found; gets what was done.
  func run(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    guard let main = found.main else { return try create(found, &report) }
    try main.check(paths.snapshot, fileSystem)
    var journal: JournalWriter?
    if let (data, replay) = found.journal.map({ ($0.data, $0.replay) }) {
      if let cut = report.cutTail, case .torn = replay.contents.tail { report.cutTail = try keepAside(cut, of: data, main.owner) }
      report.removedTemporaryFiles = try removeTemporaryFiles()
      if replay.isFolded {
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: data, main.owner)
      }
    } else {
      report.removedTemporaryFiles = try removeTemporaryFiles()
    }
    report.cutTail = report.cutTail.map(noteReported)
    return JSONFileStore(
      self, found.options, found.lock, main, journal: journal, changes: found.journal?.replay.changes ?? [:], commit: report.commit.number)
  }

  private func create(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    report.removedTemporaryFiles = try removeTemporaryFiles()
    let header = SnapshotHeader(
      storeID: report.storeID, generation: 1, commit: 0, tombstonesSince: 0, journal: SnapshotHeader.newTag())
    let temporary = JSONFilePaths.temporary(for: paths.snapshot)
    let file = try fileSystem.create(temporary)
    var writer = SnapshotWriter(file, header)
    try writer.finish()
    try file.lock()
    guard try fileSystem.status(of: paths.snapshot) == nil else {
      throw RepositoryError(.locked, "another process has created the store meanwhile", file: paths.snapshot)
    }
    try fileSystem.rename(temporary, to: paths.snapshot)
    try fileSystem.syncDirectory(paths.directory)
    let main = try MainFile(file, header, tombstones: [:])
    return JSONFileStore(self, found.options, found.lock, main, journal: nil, changes: [:], commit: 0)
  }

  /// Keeps a torn tail aside before it is cut.
  ///
  /// A full disk must not keep a store shut because of a write that was never finished; where something acknowledged may be among the
  /// bytes, it does.
  private func keepAside(_ cut: OpenReport.CutTail, of data: Data, _ owner: FileOwner?) throws(RepositoryError) -> OpenReport.CutTail {
    var cut = cut
    let start = data.startIndex + Int(cut.offset)
    do throws(RepositoryError) {
      try keepAside(data[start..<(start + cut.byteCount)], cut, owner)
    } catch {
      guard error.code == .full, !cut.isAmbiguous else { throw error }
      try fileSystem.remove(JSONFilePaths.temporary(for: cut.quarantineFile))
      cut.quarantineFile = ""
    }
    return cut
  }

  /// Writes bytes that are about to be cut to a file of their own, durably, whose name says that nobody has heard of it yet.
  private func keepAside(_ tail: Data, _ cut: OpenReport.CutTail, _ owner: FileOwner?) throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: cut.quarantineFile)
    try fileSystem.remove(temporary)
    let copy = try fileSystem.create(temporary)
    if let owner { try copy.setOwner(owner) }
    try tail.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
    try copy.sync()
    try copy.close()
    try fileSystem.rename(temporary, to: JSONFilePaths.unreported(cut))
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Gives the bytes that were cut their lasting name, now that opening cannot fail any more: until then the next open reports them again.
  private func noteReported(_ cut: OpenReport.CutTail) -> OpenReport.CutTail {
    let unreported = JSONFilePaths.unreported(cut)
    var cut = cut
    do throws(RepositoryError) {
      guard !cut.quarantineFile.isEmpty, try fileSystem.status(of: unreported) != nil else { return cut }
      // The journal may have been torn at the same place before; those bytes are kept too.
      let name = cut.quarantineFile
      var number = 2
      while try fileSystem.status(of: cut.quarantineFile) != nil, number < 1000 {
        cut.quarantineFile = "\(name)-\(number)"
        number += 1
      }
      try fileSystem.rename(unreported, to: cut.quarantineFile)
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      // The bytes are kept; that the cut will be reported once more does no harm.
      do throws(RepositoryError) {
        if try fileSystem.status(of: unreported) != nil { cut.quarantineFile = unreported }
      } catch {}
    }
    return cut
  }

  /// Copies the whole frames into a new journal, synced, in the place of the old one.
  ///
  /// The old one is not appended to: if a sync of it has failed before, the system may hold bytes that no later sync writes. The tail is
  /// left behind in one step, so that a crash here finds it as it was.
  private func renewJournal(_ contents: JournalReader.Contents, from data: Data, _ owner: FileOwner?) throws(RepositoryError)
    -> JournalWriter
  {
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    var bytes = Array(data.prefix(contents.end))
    let size = (contents.end + JournalFormat.terminatorSize + tuning.journalChunk - 1) / tuning.journalChunk * tuning.journalChunk
    bytes.append(contentsOf: repeatElement(0, count: size - bytes.count))
    var isRenamed = false
    do throws(RepositoryError) {
      try fileSystem.remove(temporary)
      let copy = try fileSystem.create(temporary)
      if let owner { try copy.setOwner(owner) }
      try bytes.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
      try copy.sync()
      try fileSystem.rename(temporary, to: paths.journal)
      isRenamed = true
      try fileSystem.syncDirectory(paths.directory)
      return try JournalWriter(
        continuing: copy, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
    } catch {
      // A full disk must not keep a store shut: it goes on with the journal that is there. Not once the new one has its name, though: a power
      // cut could bring the old one back, without what would be appended to the new one.
      guard error.code == .full, !isRenamed else { throw error }
      try fileSystem.remove(temporary)
      return try continueJournal(contents, data)
    }
  }

  /// Goes on with the journal that is there, which needs no space: writes its frames over themselves, since a sync that failed may have left
  /// them in the page cache only, and zeros over a torn tail.
  private func continueJournal(_ contents: JournalReader.Contents, _ data: Data) throws(RepositoryError) -> JournalWriter {
    guard let file = try fileSystem.open(paths.journal, writable: true) else {
      throw RepositoryError(.dataMissing, "the journal is gone while it is recovered", file: paths.journal)
    }
    var bytes = Array(data.prefix(contents.end))
    if case .torn(let end, _) = contents.tail { bytes.append(contentsOf: repeatElement(0, count: end - contents.end)) }
    try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
    try file.sync()
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, growingIn: fileSystem)
  }

  private func removeTemporaryFiles() throws(RepositoryError) -> [String] {
    let names = try (fileSystem.entries(of: paths.directory) ?? []).filter(paths.isTemporary).sorted()
    for name in names { try fileSystem.remove(paths.directory + "/" + name) }
    if !names.isEmpty { try fileSystem.syncDirectory(paths.directory) }
    return names
  }
}
