internal import Foundation

/// The next snapshot, under its temporary name: all that is needed to write it, so that any thread can.
struct SnapshotDraft: Sendable {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let main: MainFile
  var changes: [RecordAddress: StoredRecord]
  var commit: UInt64
  /// The salt of the journal that is folded.
  let journalSalt: UInt32?
  var options: StoreOptions
  let comparesChecksums: Bool

  var fold: SnapshotFold {
    SnapshotFold(
      main, changes: changes, commit: commit, tombstoneLimit: options.limits.tombstones, path: paths.snapshot,
      comparesChecksums: comparesChecksums)
  }

  /// Writes everything, durably, as the owner and with the mode of the old snapshot, and locks it; removes it again when that fails.
  ///
  /// - Parameter work: Beside which work it goes on, if beside any: it is synced in small parts then, so that no sync of a commit waits for it long.
  func write(_ work: BackgroundWork<MainFile>? = nil) throws(RepositoryError) -> MainFile {
    let fold = fold
    var header = fold.header
    guard header.generation + 1 < .max else {
      throw RepositoryError(.unsupported, "the store has had as many generations as there can be", file: paths.snapshot)
    }
    header.generation += 1
    (header.folded, header.journal) = (journalSalt, SnapshotHeader.newTag())
    if options.keepsPreviousSnapshot { try keepPrevious(work) }
    let temporary = JSONFilePaths.temporary(for: paths.snapshot)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      try file.setMode(main.mode)
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = SnapshotWriter(file, header)
      writer.work = work
      try fold.write(to: &writer)
      try writer.finish()
      try file.lock()
      return try MainFile(file, header, tombstones: fold.tombstones)
    } catch {
      discard(file)
      throw error
    }
  }

  /// Closes and removes what was written and is not wanted.
  func discard(_ file: any OpenFile) {
    // Something else has gone wrong, or nobody waits; a temporary file that stays is removed by the next open.
    do throws(RepositoryError) { try file.close() } catch {}
    do throws(RepositoryError) { try fileSystem.remove(JSONFilePaths.temporary(for: paths.snapshot)) } catch {}
  }

  private func keepPrevious(_ work: BackgroundWork<MainFile>?) throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: paths.previous)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      if let owner = main.owner { try file.setOwner(owner) }
      try copyMain(to: file, work)
      try file.sync()
      try fileSystem.rename(temporary, to: paths.previous)
    } catch {
      // A half copy takes space that is wanted; one that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      do throws(RepositoryError) { try file.close() } catch {}
      throw error
    }
    try file.close()
  }

  private func copyMain(to file: any OpenFile, _ work: BackgroundWork<MainFile>?) throws(RepositoryError) {
    var offset = 0
    while offset < main.size {
      let piece = try main.file.read(at: offset, count: 1 << 20)
      guard !piece.isEmpty else {
        throw RepositoryError(.corrupted, "the main file was cut while its store is open", file: paths.snapshot, offset: UInt64(offset))
      }
      try piece.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      offset += piece.count
      try work?.check()
    }
  }
}
