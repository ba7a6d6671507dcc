internal import Foundation

/// The first step of opening a JSON store, which reads the store's files, also after a crash, without changing their contents.
///
/// The first step creates the directory and the lock file if they are missing. The first step syncs directory, main file and journal before
/// it reads them. Without a sync before each read, a power cut could later remove bytes that the opening has read and reported as
/// committed.
struct JSONFileOpening {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions

  /// The open files and locks that ``JSONFileOpening`` passes to ``JSONFileRecovery``, the second step of opening a store.
  struct Found: Sendable {
    let lock: any HeldLock
    let options: StoreOptions
    /// The open main file, or `nil` if the store does not exist yet.
    var main: MainFile?
    var journal: Journal?
    /// True if the records stay in the files.
    var isPaged = false
    /// The index of the main file, if the records stay in the files and the store exists.
    var paging: JSONFilePaging?

    struct Journal: Sendable {
      let data: Data
      let replay: JSONFileReplay
    }

    /// Releases the locks and closes the main file.
    func release() {
      // Nothing was written to the main file, so an error of `close` is harmless. The descriptor is closed at the latest when its last
      // reference is released.
      do throws(RepositoryError) { try main?.file.close() } catch {}
      lock.release()
    }
  }

  /// Reads the store's files and passes all records to `visit`.
  ///
  /// - Parameter limits: Size limits that each record must keep, or `nil` to refuse no record.
  func run(_ limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> (Found, OpenReport) {
    try run(isPaged: false) { (journal, file) throws(RepositoryError) in
      let contents = try JSONFileContents(.file(file), journal: journal, paths: paths, recovery: options.recovery, limits: limits, visit)
      return (contents, contents.report, nil)
    }
  }

  /// The contents of the files, the report of reading them, and the index of the main file if the records stay in the files.
  typealias Contents = (files: JSONFileContents, report: OpenReport, paging: JSONFilePaging?)

  /// Opens the files, and passes the main file and the journal to `read`, unless the store is new.
  ///
  /// - Parameter isPaged: True if the records stay in the files.
  func run(
    isPaged: Bool, _ read: (Data?, any OpenFile) throws(RepositoryError) -> Contents
  ) throws(RepositoryError) -> (Found, OpenReport) {
    try paths.checkLength()
    for path in [paths.mainFile, paths.journal] {
      // The paths are checked before the lock file and directories are created, so that an opening that throws leaves no new file behind.
      guard let kind = try fileSystem.status(of: path)?.kind, kind != .file else { continue }
      throw .notAPlainFile(kind, path)
    }
    for path in paths.drafts(keepsPrevious: options.keepsPreviousSnapshot) where try fileSystem.status(of: path)?.kind == .directory {
      // A temporary file cannot replace a directory, so every save would fail if a directory had the temporary path. Opening throws for
      // such a directory, so that the caller learns of it before the first save.
      throw .notAPlainFile(.directory, path)
    }
    try fileSystem.createDirectory(paths.directory)
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      // After a crash, the last rename of a main file may not be durable yet. The sync of the directory makes the rename durable, so that
      // no power cut can undo it after the main file was read.
      try fileSystem.syncDirectory(paths.directory)
      let removed = try paths.temporaryFiles(in: fileSystem)
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        try checkAbsence()
        let report = OpenReport(storeID: UUID(), commit: .zero, isNew: true, removedTemporaryFiles: removed)
        return (Found(lock: lock, options: options, isPaged: isPaged), report)
      }
      do throws(RepositoryError) {
        return try self.read(file, under: lock, removed: removed, read)
      } catch {
        // The caller needs the error of reading, so an error of closing is ignored. The descriptor is closed at the latest when its last
        // reference is released.
        do throws(RepositoryError) { try file.close() } catch {}
        throw error
      }
    } catch {
      // An `open` that throws must release the lock, because the caller may open the store again.
      lock.release()
      throw error
    }
  }

  /// Throws `.dataMissing` if the main file is missing, but a journal, a previous main file or a quarantine file exists.
  private func checkAbsence() throws(RepositoryError) {
    let quarantine = try (fileSystem.entries(of: paths.directory) ?? []).first(where: paths.isQuarantine)
    for path in [paths.journal, paths.previous] + (quarantine.map { [paths.path(of: $0)] } ?? []) {
      guard try fileSystem.status(of: path) != nil else { continue }
      throw RepositoryError(
        .dataMissing, "main file missing, but \(path) exists; put the file back, or move that away", file: paths.mainFile)
    }
  }

  private func read(
    _ file: any OpenFile, under lock: any HeldLock, removed: [String], _ read: (Data?, any OpenFile) throws(RepositoryError) -> Contents
  ) throws(RepositoryError) -> (Found, OpenReport) {
    // After a crash some bytes of the main file may be in the page cache only. The sync keeps a power cut from losing these bytes after the
    // opening has reported them as committed.
    try file.sync()
    let journal = try fileSystem.contents(of: paths.journal, syncingFirst: true)
    let (contents, opened, paging) = try read(journal, file)
    var found = Found(lock: lock, options: options, isPaged: paging != nil, paging: paging)
    found.main = try MainFile(file, contents.header, tombstones: contents.tombstones)
    if let journal, let replay = contents.replay { found.journal = .init(data: journal, replay: replay) }
    var report = opened
    report.removedTemporaryFiles = removed
    report.cutTail = contents.replay.flatMap { cut(of: $0.contents) }
    if report.cutTail == nil { report.cutTail = try unreportedCut() }
    return (found, report)
  }

  /// Returns the cut that an earlier opening has made at the end of the journal, if that opening ended before it reported the cut.
  private func unreportedCut() throws(RepositoryError) -> OpenReport.CutTail? {
    for name in try (fileSystem.entries(of: paths.directory) ?? []).sorted() where paths.unreportedCut(name, byteCount: 0) != nil {
      let size = try fileSystem.status(of: paths.path(of: name))?.size
      return paths.unreportedCut(name, byteCount: size ?? 0)
    }
    return nil
  }

  /// Returns the torn tail (an unfinished write at the end of the journal) that recovery will cut, or `nil` if there is none.
  private func cut(of contents: JournalReader.Contents) -> OpenReport.CutTail? {
    guard case .torn(let end, let isAmbiguous) = contents.tail else { return nil }
    return .init(
      file: paths.journal, offset: UInt64(contents.end), byteCount: end - contents.end,
      quarantineFile: paths.quarantine(generation: contents.header.generation, offset: contents.end), isAmbiguous: isAmbiguous)
  }
}

extension RepositoryError {
  /// The error for a URL that is no file URL, such as a URL that `URL(string:)` creates from a path.
  static func noFileURL(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a file URL, found another; make it with `URL.applicationSupportDirectory.appending(path:)` or `URL(filePath:)`",
      file: name)
  }
}

/// A reader of a JSON store's files for `.readOnly`, which locks, syncs, cuts and removes nothing.
///
/// Another process may write the files while the reader reads them. A journal frame that is being appended looks like an unfinished write,
/// and the reader leaves it out. If a checkpoint replaces the main file during the reading, the reader finds another header in the main
/// file, and reads both files again.
struct JSONFileReader {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let options: StoreOptions

  /// Largest number of times that the reader reads the files, if a writer changes them between the reads.
  private static let attempts = 5

  /// Returns all records and tombstones in their state at one commit.
  func run(_ limits: StoreOptions.Limits?) throws(RepositoryError) -> ([LoadedRecords], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      // The main file is read before the journal, and its header is read again at the end. If the header has changed, a checkpoint was made
      // between the reads.
      guard let mainFile = try fileSystem.contents(of: paths.mainFile) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: paths.mainFile)
      }
      let journal = try fileSystem.contents(of: paths.journal)
      do throws(RepositoryError) {
        var records: [LoadedRecords] = []
        let contents = try JSONFileContents(
          .data(mainFile), journal: journal, paths: paths, recovery: options.recovery, limits: limits
        ) { records.append($0) }
        if try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize) == mainFile.prefix(Self.headerSize) {
          return (records, contents.report)
        }
      } catch {
        // A writer that changes the files between two reads can cause an error. If a second reading finds identical bytes, no writer caused
        // the error, and the error is thrown.
        if try fileSystem.contents(of: paths.mainFile) == mainFile, try fileSystem.contents(of: paths.journal) == journal { throw error }
        failure = error
      }
    }
    throw failure ?? RepositoryError(.inputOutput, "the files change faster than they can be read", file: paths.mainFile)
  }

  func verify() -> VerifyReport {
    do throws(RepositoryError) {
      let (records, report) = try run(nil)
      var counts = (records: 0, tombstones: 0)
      for loaded in records {
        switch loaded {
        case .pack(let pack): counts.records += pack.count
        case .record(let record): if record.value == nil { counts.tombstones += 1 } else { counts.records += 1 }
        }
      }
      return VerifyReport(commit: report.commit, recordCount: counts.records, tombstoneCount: counts.tombstones)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  /// Number of bytes at the beginning of the main file that are compared, which include the header with its generation.
  private static let headerSize = 512
}

extension JSONFileOpening {
  /// Reads the index file and the journal, and passes the tombstones to `visit`.
  ///
  /// If no index file describes the main file, reads the whole main file.
  func runPaged(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> (Found, PagedOpening) {
    var counts: [String: CollectionCount] = [:]
    let (found, report) = try run(isPaged: true) { (journal, file) throws(RepositoryError) in
      let (header, line) = try MainFileReader(source: .file(file), file: paths.mainFile).header()
      let stored = line.withUnsafeBytes { IndexFile.read(of: file, header: $0, paths: paths, in: fileSystem) }
      let index = if let stored { stored.index } else { try MainFileIndex.read(file, path: paths.mainFile) }
      let tombstones = Dictionary(index.tombstones.map { ($0.address, $0.revision.number) }) { $1 }
      let replay = try journal.map { (journal) throws(RepositoryError) in
        try JSONFileReplay.counting(
          journal, over: header, paths: paths, recovery: options.recovery, stored?.slots(at: header.commit) ?? .init())
      }
      let changes = replay?.changes ?? [:]
      for tombstone in index.tombstones where changes.isEmpty || changes[tombstone.address] == nil { visit(tombstone) }
      for change in changes.values where change.value == nil { visit(change) }
      let contents = JSONFileContents(header, replay, tombstones: tombstones)
      let main = try PagedMainFile(try MainFile(file, header, tombstones: tombstones), index, at: paths.mainFile, in: fileSystem)
      var report = contents.report
      report.isIndexRebuilt = stored == nil
      var paging = JSONFilePaging()
      counts = try paging.begin(main, at: header.commit, stored: stored, changes: changes, uncounted: replay?.uncounted)
      return (contents, report, paging)
    }
    let collections = counts.compactMap { name, count in
      count.records == 0
        ? nil
        : CollectionSummary(
          name: name, recordCount: count.records, byteCount: count.bytes,
          schemaVersions: min(count.versions.oldest, count.versions.newest)...count.versions.newest)
    }
    return (found, PagedOpening(report: report, collections: collections))
  }
}

extension UncountedChanges {
  /// Returns the counts after all changes.
  ///
  /// - Parameter newest: Newest record or tombstone of every changed address.
  func total(
    of newest: [RecordAddress: StoredRecord], over main: PagedMainFile
  ) throws(RepositoryError) -> [String: CollectionCount] {
    var total = slot?.collections ?? main.index.counts
    var last: PagedMainFile.Block?
    // In the order of the addresses, each block of the main file is read at most once.
    for (address, before) in changes.sorted(by: { $0.key < $1.key }) {
      guard let record = newest[address] else { continue }
      let wasPresent = try before.record(at: address, in: main, last: &last) != nil
      var count = total[address.collection] ?? CollectionCount()
      // Only an index file that another program has written can have fewer records than are deleted here.
      count.records = max(0, count.records + (record.value == nil ? 0 : 1) - (wasPresent ? 1 : 0))
      count.note(record)
      total[address.collection] = count
    }
    return total
  }
}
