import Foundation
import Larder
import LarderTesting

/// The invariants I1 to I9, which must hold of a store after a crash.
///
/// - I1: every acknowledged commit is there. I2: every other batch is there as a whole or not at all, in order. I3: no value that nobody
///   wrote.
/// - I4: opening works. I5: a save works afterwards, and survives. I6: recovering again changes nothing and reports nothing.
/// - I7: no temporary file stays, and the files stay small. I8: files are 0600. I9: the report tells exactly of what was dropped.
struct CrashInvariants {
  typealias Violation = CrashWorkload.Violation

  /// The result of opening.
  struct Opened {
    let backend: JSONFileBackend
    let report: OpenReport
    let records: [RecordAddress: StoredRecord]
  }

  let workload: CrashWorkload
  let tuning: JSONFileBackend.Tuning
  /// Puts a file system between the files and the reader: a mutation.
  var through: (SimulatedFileSystem) -> any FileSystem = { $0 }

  /// Checks them all, or only those that the first opening shows (not I5 and I6); the files are changed by it.
  func check(
    _ files: SimulatedFileSystem, _ kind: CrashKind, _ promises: [CrashWorkload.Promise], andGoOn goesOn: Bool = true
  ) throws {
    let before = Dictionary(uniqueKeysWithValues: files.paths.map { ($0, files.contents(of: $0) ?? Data()) })

    if let previous = before[CrashWorkload.path + "-previous"] { try checkPrevious(previous) }
    let first = try open(files, "I4")
    try workload.judge(first.records, first.report, kind, promises)
    try checkReport(first.report, before, files)
    try checkFiles(files, isOpen: true)
    if let problem = first.backend.verify().problems.first { throw Violation("I4: verify: \(problem)") }

    guard goesOn else { return }
    for (crash, left) in [("a kill", files.copy()), ("power loss", files.crashImages(limit: 1)[0].fileSystem)] {
      if let path = first.report.cutTail?.quarantineFile {
        try expect(left.contents(of: path) == files.contents(of: path), "I9: the bytes that were cut are not kept after \(crash)")
      }
      let second = try open(left, "I6 after \(crash)")
      try expect(second.report.commit == first.report.commit, "I6: commit \(first.report.commit) became \(second.report.commit)")
      try expect(second.report.isClean && !second.report.isNew, "I6: the second recovery after \(crash) is not clean")
      try CrashWorkload.compare(second.records, first.records, "I6 after \(crash)")
    }
    try checkSaving(first, files)
  }

  /// The previous main file is whole at any time: it is what a user goes back to.
  private func checkPrevious(_ contents: Data) throws {
    let files = SimulatedFileSystem()
    try files.createDirectory((CrashWorkload.path as NSString).deletingLastPathComponent)
    try files.place(contents, at: CrashWorkload.path)
    let opened = try open(files, "I4 of the previous main file")
    if let problem = opened.backend.verify().problems.first { throw Violation("I4: verify of the previous main file: \(problem)") }
    opened.backend.abandon()
  }

  private func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    try CrashWorkload.expect(condition, message())
  }

  private func open(_ files: SimulatedFileSystem, _ invariant: String) throws -> Opened {
    let backend = JSONFileBackend(file: CrashWorkload.file, fileSystem: through(files), tuning: tuning)
    var records: [RecordAddress: StoredRecord] = [:]
    var repeated: RecordAddress?
    do {
      let report = try backend.openAndRecover(workload.options) { record in
        if records.updateValue(record, forKey: record.address) != nil { repeated = record.address }
      }
      if let repeated { throw Violation("I2: \(repeated.key.text) was visited twice") }
      return Opened(backend: backend, report: report, records: records)
    } catch let error as RepositoryError {
      throw Violation("\(invariant): opening failed: \(error)")
    }
  }

  /// A journal without the zero bytes that are allocated behind its frames; recovery copies the frames and allocates anew.
  private static func written(_ journal: Data) -> Data {
    journal.prefix((journal.lastIndex { $0 != 0 } ?? journal.startIndex - 1) - journal.startIndex + 1)
  }

  /// I9.
  private func checkReport(_ report: OpenReport, _ before: [String: Data], _ files: SimulatedFileSystem) throws {
    // An interrupted recovery may have begun the very quarantine file that this one finished: that is reported as the cut.
    let finished = report.cutTail.map { $0.quarantineFile + "-tmp" }
    let temporary = before.keys.filter { $0.hasSuffix("-tmp") && $0 != finished }
      .map { ($0 as NSString).lastPathComponent }.sorted()
    try expect(report.removedTemporaryFiles == temporary, "I9: removed \(report.removedTemporaryFiles), there were \(temporary)")
    let journal = CrashWorkload.path + "-journal"
    let quarantined = files.paths.filter { $0.contains("-quarantine-") && before[$0] == nil }
    guard let cut = report.cutTail else {
      try expect(quarantined.isEmpty, "I9: \(quarantined) was made and not reported")
      if let now = files.contents(of: journal) {
        try expect(Self.written(now) == before[journal].map(Self.written), "I9: the journal was changed and nothing reported")
      }
      return
    }
    let unreported = ["-due", "-torn"].compactMap { before[cut.quarantineFile + $0] }.first
    if let unreported, before[journal].map({ Self.written($0).count <= cut.offset }) ?? true {
      // An interrupted recovery has cut it already.
      try expect(files.contents(of: cut.quarantineFile) == unreported, "I9: the bytes kept are not the bytes that were cut before")
      return try expect(cut.file == journal && cut.byteCount == unreported.count, "I9: another cut was reported than the one before")
    }
    guard let old = before[journal], let kept = files.contents(of: cut.quarantineFile) else {
      throw Violation("I9: a cut was reported and its files are not there")
    }
    let (start, end) = (Int(cut.offset), Int(cut.offset) + cut.byteCount)
    try expect(cut.file == journal && kept == old[start..<end], "I9: the bytes kept are not the bytes cut")
    // A journal whose whole frames are all in a newer snapshot is removed.
    if let now = files.contents(of: journal) {
      try expect(Self.written(now) == Self.written(old[..<start]), "I9: more was cut than reported")
    }
    try expect(old[end...] == Data(count: old.count - end), "I9: bytes behind the cut were dropped")
  }

  /// I7 and I8.
  private func checkFiles(_ files: SimulatedFileSystem, isOpen: Bool) throws {
    for path in files.paths {
      let suffix = path.dropFirst(CrashWorkload.path.count)
      let isExpected =
        suffix.isEmpty || suffix.hasPrefix("-quarantine-") && !suffix.hasSuffix("-tmp")
        || suffix == "-previous" && workload.options.keepsPreviousSnapshot || suffix == "-journal" && isOpen
      try expect(isExpected, "I7: \(path) stays")
      try expect(files.mode(of: path) == 0o600, "I8: the mode of \(path) is \(String(files.mode(of: path) ?? 0, radix: 8))")
      try expect((files.contents(of: path)?.count ?? 0) < 64 << 10, "I7: \(path) is too large")
    }
  }

  /// I5.
  private func checkSaving(_ opened: Opened, _ files: SimulatedFileSystem) throws {
    let commit = opened.report.commit.number + 1
    let record = StoredRecord(
      collection: "spots", key: RecordKey("after the crash"), revision: Revision(commit), schemaVersion: 1, value: Data("1".utf8))
    var expected = opened.records
    expected[record.address] = record
    do {
      try opened.backend.commit(WriteBatch(records: [record], commits: commit...commit))
      let lost = try open(files.crashImages(limit: 1)[0].fileSystem, "I5 after power loss")
      try CrashWorkload.compare(lost.records, expected, "I5 after power loss")
      try expect(lost.report.isClean, "I5: not clean after power loss")
      try opened.backend.close()
    } catch let error as RepositoryError {
      throw Violation("I5: \(error)")
    }
    try checkFiles(files, isOpen: false)
    let closed = try open(files.copy(), "I5 after closing")
    try CrashWorkload.compare(closed.records, expected, "I5 after closing")
    try expect(closed.report.isClean && closed.report.replayedCommits == 0, "I5: not clean after closing")
  }
}
