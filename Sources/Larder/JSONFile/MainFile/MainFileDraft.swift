internal import Foundation

/// The next main file, under its temporary name: all that is needed to write it, so that any thread can.
struct MainFileDraft: Sendable {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let main: MainFile
  var changes: [RecordAddress: StoredRecord]
  var commit: UInt64
  /// The salt of the journal that is folded.
  let journalSalt: UInt32?
  var options: StoreOptions

  var fold: MainFileFold {
    MainFileFold(
      main, changes: changes, commit: commit, tombstoneLimit: options.limits.tombstones, path: paths.mainFile)
  }

  /// Writes everything, durably, with the owner, mode and attributes of the old main file, and locks it; removes it again when that fails.
  ///
  /// - Parameter work: Beside which work it goes on, if beside any: it is synced in small parts then, so that no sync of a commit waits
  ///   for it long.
  func write(_ work: BackgroundWork<MainFile>? = nil) throws(RepositoryError) -> MainFile {
    let fold = fold
    var header = fold.header
    guard header.generation + 1 < .max else {
      throw RepositoryError(.unsupported, "the store has had as many generations as there can be", file: paths.mainFile)
    }
    header.generation += 1
    (header.folded, header.journal) = (journalSalt, MainFileHeader.newTag())
    if options.keepsPreviousSnapshot { try keepPrevious(work) }
    return try replacement.write(like: nil) { file throws(RepositoryError) in
      try file.setMode(main.mode)
      try main.passOn(to: file)
      var writer = MainFileWriter(file, header)
      writer.work = work
      try fold.write(to: &writer)
      try writer.finish()
      try file.lock()
      return try MainFile(file, header, tombstones: fold.tombstones)
    }
  }

  /// The replacement of the main file, which ``write(_:)`` begins and the user of its result ends.
  var replacement: FileReplacement { FileReplacement(path: paths.mainFile, fileSystem: fileSystem) }

  private func keepPrevious(_ work: BackgroundWork<MainFile>?) throws(RepositoryError) {
    let previous = FileReplacement(path: paths.previous, fileSystem: fileSystem)
    // A half copy takes space that is wanted: it is removed when this fails.
    let copy = try previous.write(like: main) { file throws(RepositoryError) in
      try copyMain(to: file, work)
      try file.sync()
      try previous.rename()
      return file
    }
    try copy.close()
  }

  private func copyMain(to file: any OpenFile, _ work: BackgroundWork<MainFile>?) throws(RepositoryError) {
    var offset = 0
    while offset < main.size {
      let piece = try main.file.read(at: offset, count: 1 << 20)
      guard !piece.isEmpty else {
        throw RepositoryError(.corrupted, "the main file was cut while its store is open", file: paths.mainFile, offset: UInt64(offset))
      }
      try piece.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      offset += piece.count
      try work?.check()
    }
  }
}
