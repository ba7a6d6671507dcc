internal import Foundation

/// The first step of opening a JSON store: reads its files in the state in which a crash may have left them, and changes nothing.
///
/// Directory, main file and journal are synced before they are read. Without these syncs, a power cut could take away bytes on which a
/// decision of this opening was based.
struct JSONFileOpening {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions

  /// The open files and locks that ``JSONFileOpening`` passes to the second step, ``JSONFileRecovery``.
  struct Found: Sendable {
    let lock: any HeldLock
    let options: StoreOptions
    /// Open main file, or `nil` for a store that does not exist yet.
    var main: MainFile?
    var journal: Journal?

    struct Journal: Sendable {
      let data: Data
      let replay: JSONFileReplay
    }

    /// Releases the locks and closes the main file.
    func release() {
      // Nothing was written to the main file, so an error of `close` is harmless. The last reference closes the descriptor at the latest.
      do throws(RepositoryError) { try main?.file.close() } catch {}
      lock.release()
    }
  }

  /// Reads the store and passes its records to `visit`.
  ///
  /// - Parameter limits: Size limits that each record must keep, or `nil` to refuse no record.
  func run(_ limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> (Found, OpenReport) {
    try paths.checkLength()
    for path in [paths.mainFile, paths.journal] {
      // Both paths are checked before the lock file and directories are created, so that a refused store leaves nothing behind.
      guard let kind = try fileSystem.status(of: path)?.kind, kind != .file else { continue }
      throw .notAPlainFile(kind, path)
    }
    for path in paths.drafts(keepsPrevious: options.keepsPreviousSnapshot) where try fileSystem.status(of: path)?.kind == .directory {
      // A directory at a temporary path cannot be removed, and every save would fail. Opening throws here, so that the caller learns of the
      // directory before the first save.
      throw .notAPlainFile(.directory, path)
    }
    try fileSystem.createDirectory(paths.directory)
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      // A crash may have left a rename of the main file that is not durable. The sync of the directory keeps a power cut from undoing that
      // rename after this opening has found the main file.
      try fileSystem.syncDirectory(paths.directory)
      let removed = try paths.temporaryFiles(in: fileSystem)
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        try checkAbsence()
        let report = OpenReport(storeID: UUID(), commit: .zero, isNew: true, removedTemporaryFiles: removed)
        return (Found(lock: lock, options: options), report)
      }
      do throws(RepositoryError) {
        return try read(file, under: lock, removed: removed, limits: limits, visit)
      } catch {
        // The caller needs the error of reading, so an error of closing is ignored. The last reference closes the descriptor at the latest.
        do throws(RepositoryError) { try file.close() } catch {}
        throw error
      }
    } catch {
      // An `open` that throws must release the lock, because the caller may open the store again.
      lock.release()
      throw error
    }
  }

  /// Throws `.dataMissing` if the main file is missing but its journal, its previous version or a quarantine file exists.
  private func checkAbsence() throws(RepositoryError) {
    let quarantine = try (fileSystem.entries(of: paths.directory) ?? []).first(where: paths.isQuarantine)
    for path in [paths.journal, paths.previous] + (quarantine.map { [paths.path(of: $0)] } ?? []) {
      guard try fileSystem.status(of: path) != nil else { continue }
      throw RepositoryError(
        .dataMissing, "main file missing, but \(path) exists; put the file back, or move that away", file: paths.mainFile)
    }
  }

  private func read(
    _ file: any OpenFile, under lock: any HeldLock, removed: [String], limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> (Found, OpenReport) {
    // After a crash some bytes of the main file may be in the page cache only. Without this sync a power cut could lose them after this
    // opening has reported them as committed.
    try file.sync()
    let journal = try fileSystem.contents(of: paths.journal, syncingFirst: true)
    let contents = try JSONFileContents(.file(file), journal: journal, paths: paths, recovery: options.recovery, limits: limits, visit)
    var found = Found(lock: lock, options: options)
    found.main = try MainFile(file, contents.header, tombstones: contents.tombstones)
    if let journal, let replay = contents.replay { found.journal = .init(data: journal, replay: replay) }
    var report = contents.report
    report.removedTemporaryFiles = removed
    report.cutTail = contents.replay.flatMap { cut(of: $0.contents) }
    if report.cutTail == nil { report.cutTail = try unreportedCut() }
    return (found, report)
  }

  /// Returns the cut of a torn tail that an earlier opening made, if that opening ended before it reported the cut.
  private func unreportedCut() throws(RepositoryError) -> OpenReport.CutTail? {
    for name in try (fileSystem.entries(of: paths.directory) ?? []).sorted() where paths.unreportedCut(name, byteCount: 0) != nil {
      let size = try fileSystem.status(of: paths.path(of: name))?.size
      return paths.unreportedCut(name, byteCount: size ?? 0)
    }
    return nil
  }

  /// Returns the torn tail of the journal (an unfinished write) that recovery will cut, if any.
  private func cut(of contents: JournalReader.Contents) -> OpenReport.CutTail? {
    guard case .torn(let end, let isAmbiguous) = contents.tail else { return nil }
    return .init(
      file: paths.journal, offset: UInt64(contents.end), byteCount: end - contents.end,
      quarantineFile: paths.quarantine(generation: contents.header.generation, offset: contents.end), isAmbiguous: isAmbiguous)
  }
}

extension RepositoryError {
  /// The error for a URL that is no file URL, such as `URL(string:)` creates from a path.
  static func noFileURL(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a file URL, found another; make it with `URL.applicationSupportDirectory.appending(path:)` or `URL(filePath:)`",
      file: name)
  }
}

/// A reader of a JSON store's files for `.readOnly`, which locks, syncs, cuts and removes nothing.
///
/// Another process may write while the reader reads. A frame that is being appended to the journal looks like a torn tail and is left out.
/// A checkpoint replaces the main file. If that happens during the reading, the reader finds another generation in the header, and reads
/// both files again.
struct JSONFileReader {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let options: StoreOptions

  /// Largest number of times that the files are read, if a writer changes them from one read to the next.
  private static let attempts = 5

  /// Returns all records and tombstones as of one commit.
  func run(_ limits: StoreOptions.Limits?) throws(RepositoryError) -> ([LoadedRecords], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      // The main file is read before the journal. The comparison of headers below then detects a checkpoint between the two reads.
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
        // A working writer changes the files between two reads. If a second reading finds identical bytes, no writer caused the error, and
        // the error is thrown.
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

  /// Number of bytes to compare at the beginning of the main file, which is enough for the header with its generation.
  private static let headerSize = 512
}
