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

/// The contents of the next main file: the lines of the old one and the changes of the journal, merged in the order of addresses.
///
/// Lines that did not change are carried over as they are, so that a record which no version of the app can decode survives. The old file
/// is read line by line: memory is needed for the changes only.
struct MainFileFold: Sendable {
  /// The old main file, and what it must say of itself.
  let source: any OpenFile
  let sourceHeader: MainFileHeader
  /// The newest record or tombstone of every address that is not as in the old main file.
  let changes: [RecordAddress: StoredRecord]
  /// The newest commit that the changes have.
  let commit: UInt64
  /// The name of the old main file, for errors.
  let path: String
  /// Deletions up to this commit are left out, because there are too many; 0 when none is.
  let forgotten: UInt64
  /// The tombstones that will be there, and the commits of their deletions.
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
      if deletion != nil || !main.tombstones.isEmpty { tombstones[address] = deletion }
    }
    if tombstones.count > tombstoneLimit {
      let oldest = tombstones.values.sorted(by: >)[tombstoneLimit]
      tombstones = tombstones.filter { $0.value > oldest }
      forgotten = oldest
    } else {
      forgotten = 0
    }
    self.tombstones = tombstones
  }

  /// The header of a main file with everything: that of the old one, at the newest commit.
  var header: MainFileHeader {
    var header = sourceHeader
    header.commit = commit
    header.tombstonesSince = max(sourceHeader.tombstonesSince, forgotten)
    return header
  }

  /// Writes everything in order.
  /// - Throws: `.corrupted` when the old main file was damaged since it was opened; what the writer throws.
  func write(to writer: inout MainFileWriter) throws(RepositoryError) {
    try merge(in: writer.work) { (line, bytes) throws(RepositoryError) in
      let text = bytes[(bytes.startIndex + line.text.lowerBound)..<(bytes.startIndex + line.text.upperBound)]
      try writer.add(line: text, checksum: line.checksum)
    } change: { record throws(RepositoryError) in
      try writer.add(record)
    }
  }

  /// Returns how many lines there will be, from reading the old main file whole and comparing every checksum.
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
    guard found == sourceHeader else {
      throw RepositoryError(.corrupted, "another file was put in the place of the main file", file: path, offset: 0)
    }
    for record in changed[next...] where !isForgotten(record) { try change(record) }
  }

  private func isForgotten(_ record: StoredRecord) -> Bool { record.value == nil && record.revision.number <= forgotten }
}
