internal import Foundation

/// The first step of opening a JSON store: reads its files in the state in which a crash may have left them, and changes nothing.
///
/// Directory, main file and journal are synced before they are read. Otherwise a crash could take away bytes that a decision was based on.
struct JSONFileOpening {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions

  /// The files and locks that the first step passes to the second.
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
      // Nothing was written, so an error of `close` means nothing. The descriptor is closed with its last reference at the latest.
      do throws(RepositoryError) { try main?.file.close() } catch {}
      lock.release()
    }
  }

  /// Reads the store and passes its records to `visit`.
  /// - Parameter limits: Limits that records must keep. With `nil` no record is refused.
  func run(_ limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> (Found, OpenReport) {
    try paths.checkLength()
    for path in [paths.mainFile, paths.journal] {
      // Before the lock and the directories are created, and also if the main file is missing.
      guard let kind = try fileSystem.status(of: path)?.kind, kind != .file else { continue }
      throw .notAPlainFile(kind, path)
    }
    for path in paths.drafts(keepsPrevious: options.keepsPreviousSnapshot) where try fileSystem.status(of: path)?.kind == .directory {
      // A directory at a temporary path cannot be removed, and every save would fail. Better to fail here.
      throw .notAPlainFile(.directory, path)
    }
    try fileSystem.createDirectory(paths.directory)
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      // A crash may have left a rename that is not durable. Its file decides whether the store is new.
      try fileSystem.syncDirectory(paths.directory)
      let removed = try paths.temporaryFiles(in: fileSystem)
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        try checkAbsence()
        let report = OpenReport(storeID: UUID(), commit: .zero, isNew: true, removedTemporaryFiles: removed)
        return (Found(lock: lock, options: options), report)
      }
      do throws(RepositoryError) {
        return try read(file, lock, removed, limits, visit)
      } catch {
        // The caller needs the first error. The descriptor is closed with its last reference at the latest.
        do throws(RepositoryError) { try file.close() } catch {}
        throw error
      }
    } catch {
      // An `open` that throws must leave the backend as new.
      lock.release()
      throw error
    }
  }

  /// Throws `.dataMissing` if the main file is missing but its journal, previous generation or quarantine exists.
  private func checkAbsence() throws(RepositoryError) {
    let quarantine = try (fileSystem.entries(of: paths.directory) ?? []).first(where: paths.isQuarantine)
    for path in [paths.journal, paths.previous] + (quarantine.map { [paths.path(of: $0)] } ?? []) {
      guard try fileSystem.status(of: path) != nil else { continue }
      throw RepositoryError(
        .dataMissing, "main file missing, but \(path) exists; put the file back, or move that away", file: paths.mainFile)
    }
  }

  private func read(
    _ file: any OpenFile, _ lock: any HeldLock, _ removed: [String], _ limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> (Found, OpenReport) {
    // Bytes that only the page cache has may be lost in a power cut, after they were reported as committed.
    try file.sync()
    let journal = try fileSystem.contents(of: paths.journal, syncingFirst: true)
    let contents = try JSONFileContents(.file(file), journal, paths, options.recovery, limits, visit)
    var found = Found(lock: lock, options: options)
    found.main = try MainFile(file, contents.header, tombstones: contents.tombstones)
    if let journal, let replay = contents.replay { found.journal = .init(data: journal, replay: replay) }
    var report = contents.report
    report.removedTemporaryFiles = removed
    report.cutTail = contents.replay.flatMap { cut(of: $0.contents) }
    if report.cutTail == nil { report.cutTail = try unreportedCut() }
    return (found, report)
  }

  /// Returns the cut of an earlier opening that ended before it was reported.
  private func unreportedCut() throws(RepositoryError) -> OpenReport.CutTail? {
    for name in try (fileSystem.entries(of: paths.directory) ?? []).sorted() where paths.unreportedCut(name, byteCount: 0) != nil {
      let size = try fileSystem.status(of: paths.path(of: name))?.size
      return paths.unreportedCut(name, byteCount: size ?? 0)
    }
    return nil
  }

  /// Returns the torn tail that recovery will cut, if any.
  private func cut(of contents: JournalReader.Contents) -> OpenReport.CutTail? {
    guard case .torn(let end, let isAmbiguous) = contents.tail else { return nil }
    return .init(
      file: paths.journal, offset: UInt64(contents.end), byteCount: end - contents.end,
      quarantineFile: paths.quarantine(generation: contents.header.generation, offset: contents.end), isAmbiguous: isAmbiguous)
  }
}

extension RepositoryError {
  /// The error for a URL that is no file URL, as `URL(string:)` creates from a path.
  static func noFileURL(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a file URL, found another; make it with `URL.applicationSupportDirectory.appending(path:)` or `URL(filePath:)`",
      file: name)
  }
}

/// A reader of a JSON store's files as they are.
///
/// It locks, syncs, cuts and removes nothing.
///
/// A writer may be at work. A frame that it is appending to the journal looks like a torn tail and is left out. A checkpoint puts another
/// main file in place. The reader notices the new generation in the header, and reads everything again.
struct JSONFileReader {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let options: StoreOptions

  /// Number of attempts to read files that a writer keeps changing.
  private static let attempts = 5

  /// Returns all records and tombstones as of one commit.
  func run(_ limits: StoreOptions.Limits?) throws(RepositoryError) -> ([LoadedRecords], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      // The main file first: a checkpoint between the two reads then shows in the header comparison below.
      guard let mainFile = try fileSystem.contents(of: paths.mainFile) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: paths.mainFile)
      }
      let journal = try fileSystem.contents(of: paths.journal)
      do throws(RepositoryError) {
        var records: [LoadedRecords] = []
        let contents = try JSONFileContents(.data(mainFile), journal, paths, options.recovery, limits) { records.append($0) }
        if try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize) == mainFile.prefix(Self.headerSize) {
          return (records, contents.report)
        }
      } catch {
        // A writer's work changes between two readings. An error with identical bytes is damage.
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

  /// Bytes that are enough to hold the header, and with it the generation.
  private static let headerSize = 512
}
