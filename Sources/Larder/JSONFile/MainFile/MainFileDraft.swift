internal import Foundation

/// The description of the next main file, with all values that a background thread needs to write the file under a temporary name.
struct MainFileDraft: Sendable {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let main: MainFile
  var changes: [RecordAddress: StoredRecord]
  var commit: UInt64
  /// Salt of the journal that is folded into the next main file, or `MainFileHeader.noJournal` if the store has no journal.
  let journalSalt: UInt32?
  var options: StoreOptions
  /// True if the store leaves its records in the files, so that the next main file needs an index.
  var isIndexed = false
  /// Indexes of the store, whose keys the index file of the next main file gets.
  var indexes: [IndexDraft] = []

  /// The contents of the next main file.
  var fold: MainFileFold {
    MainFileFold(
      main, changes: changes, commit: commit, tombstoneLimit: options.limits.tombstones, path: paths.mainFile)
  }

  /// Writes all records durably, with the owner, mode and attributes of the old main file, and locks the new file.
  ///
  /// If a step throws, the new file is removed.
  /// - Parameter work: The background work that calls this method, if any. With background work, the file is synced every 2 MiB, so that
  ///   the sync of a commit does not wait long for the disk.
  func write(_ work: BackgroundWork<MainFile>? = nil) throws(RepositoryError) -> MainFile {
    let fold = fold
    var header = fold.header
    // A reader refuses the generation `UInt64.max`, because adding one to the maximum would trap.
    guard header.generation + 1 < .max else {
      throw RepositoryError(.unsupported, "the store has had as many generations as there can be", file: paths.mainFile)
    }
    header.generation += 1
    // Every main file gets a new journal tag, so that a reader does not accept the old journal as the journal that continues the new main
    // file.
    (header.folded, header.journal) = (journalSalt, MainFileHeader.newTag())
    // The present main file is copied first, so that a failed copy leaves no unfinished new main file behind.
    if options.keepsPreviousSnapshot { try keepPrevious(work) }
    return try replacement.write(like: nil) { file throws(RepositoryError) in
      try file.setMode(main.mode)
      try main.passOn(to: file)
      var writer = MainFileWriter(file, header, isIndexed: isIndexed)
      writer.work = work
      try fold.write(to: &writer)
      let index = try writer.finish()
      // The new main file is locked before its rename, so that no other store can open the file after the rename.
      try file.lock()
      var next = try MainFile(file, header, tombstones: fold.tombstones)
      if let index {
        let written = IndexFile.write(index, indexes, at: header.commit, like: main, paths: paths, in: fileSystem, work)
        next.newIndex = written ?? NewIndex(index: index, file: nil, indexes: JSONFileIndexes())
      }
      return next
    }
  }

  /// Closes and removes a written main file that does not get its name, and its index file.
  func discard(_ next: MainFile) {
    replacement.discard(next.file)
    next.newIndex?.file?.discard(paths: paths, in: fileSystem)
  }

  /// The replacement of the main file, which ``write(_:)`` begins.
  ///
  /// The caller of ``write(_:)`` renames the written file into place, or calls ``discard(_:)``.
  var replacement: FileReplacement { FileReplacement(path: paths.mainFile, fileSystem: fileSystem) }

  private func keepPrevious(_ work: BackgroundWork<MainFile>?) throws(RepositoryError) {
    let previous = FileReplacement(path: paths.previous, fileSystem: fileSystem)
    // An unfinished copy takes space that the new main file needs, so `previous.write` removes the copy if a step throws.
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
      // The main file is read in pieces, because a whole main file may not fit into memory.
      let piece = try main.file.read(at: offset, count: 1 << 20)
      guard !piece.isEmpty else {
        throw RepositoryError(.corrupted, "the main file was cut while its store is open", file: paths.mainFile, offset: UInt64(offset))
      }
      try piece.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      offset += piece.count
      // Cancellation is checked after each piece and not only at the end, because a checkpoint that is cancelled must stop soon.
      try work?.check()
    }
  }
}

/// The contents of the next main file: the lines of the old main file and the changes of the journal, sorted by collection and key.
///
/// Unchanged lines are copied byte by byte, so that a record which no version of the app can decode is preserved. The old main file is read
/// piece by piece, so that the records of the old main file need not fit into memory.
struct MainFileFold: Sendable {
  /// The open old main file.
  let source: any OpenFile
  let sourceHeader: MainFileHeader
  /// Newest record or tombstone of every address (collection and key) that was changed since the old main file was written.
  let changes: [RecordAddress: StoredRecord]
  /// Newest commit of the store, which the next main file will have.
  let commit: UInt64
  /// Path of the old main file, for errors.
  let path: String
  /// Commit up to which tombstones are left out because there are too many, or 0 if no tombstone is left out.
  let forgotten: UInt64
  /// Addresses (collection and key) of the tombstones in the next main file, with the commits of the deletions.
  let tombstones: [RecordAddress: UInt64]

  init(_ main: MainFile, changes: [RecordAddress: StoredRecord], commit: UInt64, tombstoneLimit: Int, path: String) {
    source = main.file
    sourceHeader = main.header
    self.changes = changes
    self.commit = commit
    self.path = path
    var tombstones = main.tombstones
    for (address, record) in changes {
      let deletion = record.value == nil ? record.revision.number : nil
      // If the main file has no tombstones, an inserted record replaces no tombstone, and its address is not hashed.
      if deletion != nil || !main.tombstones.isEmpty { tombstones[address] = deletion }
    }
    if tombstones.count > tombstoneLimit {
      // All tombstones up to one commit are dropped, and not just the tombstones over the limit, because the header names one commit as the
      // tombstone horizon.
      let oldest = tombstones.values.sorted(by: >)[tombstoneLimit]
      tombstones = tombstones.filter { $0.value > oldest }
      forgotten = oldest
    } else {
      forgotten = 0
    }
    self.tombstones = tombstones
  }

  /// The header of the old main file, changed to the newest commit and the new tombstone horizon.
  var header: MainFileHeader {
    var header = sourceHeader
    header.commit = commit
    header.tombstonesSince = max(sourceHeader.tombstonesSince, forgotten)
    return header
  }

  /// Writes the lines of the next main file, sorted by collection and key.
  ///
  /// - Throws: `.corrupted` if the old main file was damaged since it was opened, and the errors of the `MainFileWriter`.
  func write(to writer: inout MainFileWriter) throws(RepositoryError) {
    try merge(in: writer.work) { (line, bytes) throws(RepositoryError) in
      let text = bytes[(bytes.startIndex + line.text.lowerBound)..<(bytes.startIndex + line.text.upperBound)]
      try writer.add(line, text: text)
    } change: { record throws(RepositoryError) in
      try writer.add(record)
    }
  }

  /// Returns the number of lines of the next main file, after reading the whole old main file and comparing every checksum.
  func countLines() throws(RepositoryError) -> Int {
    var (lines, changed) = (0, 0)
    try merge { _, _ in
      lines += 1
    } change: { _ in
      changed += 1
    }
    return lines + changed
  }

  private func merge(
    in work: BackgroundWork<MainFile>? = nil, _ keep: (MainFileReader.Line, Data) throws(RepositoryError) -> Void,
    change: (StoredRecord) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    // Sorting a million changes takes long, so the sort checks for cancellation: a checkpoint that is cancelled must stop soon.
    guard let changed = changes.values.sorted(by: { $0.address < $1.address }, unless: { work?.isGivenUp == true }) else {
      throw .checkpointGivenUp
    }
    var next = 0
    let found = try MainFileStream(file: source, path: path).read {
      (line, bytes) throws(RepositoryError) in
      let address = line.record.address
      while next < changed.count, changed[next].address < address {
        if !isForgotten(changed[next]) { try change(changed[next]) }
        next += 1
      }
      guard next == changed.count || changed[next].address != address, !isForgotten(line.record) else { return }
      try keep(line, bytes)
    }
    // If the header differs from the header read at the opening, another program has overwritten the main file while the store is open.
    guard found == sourceHeader else {
      throw RepositoryError(.corrupted, "another file was put in the place of the main file", file: path, offset: 0)
    }
    for record in changed[next...] where !isForgotten(record) { try change(record) }
  }

  private func isForgotten(_ record: StoredRecord) -> Bool { record.value == nil && record.revision.number <= forgotten }
}
