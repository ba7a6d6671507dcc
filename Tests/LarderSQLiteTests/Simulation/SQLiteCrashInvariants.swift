import Foundation
import Larder
import LarderTesting
import TestSupport

@testable import LarderSQLite

/// The invariants I1 to I9 of the JSON store, which must hold of a SQLite store after a crash.
struct SQLiteCrashInvariants {
  typealias Violation = CrashWorkload.Violation

  private struct Opened {
    let backend: SQLiteBackend
    let report: OpenReport
    let records: [RecordAddress: StoredRecord]
  }

  let workload: CrashWorkload

  /// Checks them all, or only those that the first opening shows (not I5 and I6); the files are changed by it.
  func check(_ files: SimulatedFileSystem, _ kind: CrashKind, _ promises: [CrashWorkload.Promise], andGoOn goesOn: Bool = true) throws {
    let mirror = try MirroredDirectory(files)
    let first = try open(mirror, "I4")
    try workload.judge(first.records, first.report, kind, promises)
    try checkFiles(mirror, isOpen: true)
    if let problem = first.backend.verify().problems.first { throw Violation("I4: verify: \(problem)") }
    guard goesOn else { return }

    for (crash, left) in [("a kill", files.copy()), ("power loss", files.crashImages(limit: 1)[0].fileSystem)] {
      if let file = first.report.cutTail?.quarantineFile {
        let path = String(file.dropFirst(mirror.path.count))
        let kept = mirror.model.contents(of: path)
        try CrashWorkload.expect(
          kept != nil && left.contents(of: path) == kept, "I9: the bytes that were cut are not kept after \(crash)")
      }
      let second = try open(MirroredDirectory(left), "I6 after \(crash)")
      try CrashWorkload.expect(
        second.report.commit == first.report.commit, "I6: commit \(first.report.commit) became \(second.report.commit)")
      try CrashWorkload.expect(second.report.isClean && !second.report.isNew, "I6: the second recovery after \(crash): \(second.report)")
      try CrashWorkload.compare(second.records, first.records, "I6 after \(crash)")
    }
    try checkSaving(first, mirror)
    try mirror.checkIsFaithful()
  }

  private func open(_ mirror: MirroredDirectory, _ invariant: String) throws -> Opened {
    let backend = mirror.backend()
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

  /// I7 and I8.
  private func checkFiles(_ mirror: MirroredDirectory, isOpen: Bool) throws {
    for path in mirror.model.paths {
      let suffix = path.dropFirst("/spots.sqlite".count)
      let isExpected = suffix.isEmpty || suffix.hasPrefix("-quarantine-") || isOpen && suffix == "-wal"
      try CrashWorkload.expect(isExpected, "I7: \(path) stays")
      let mode = try POSIXFileSystem().status(of: mirror.path + path)?.mode ?? 0
      try CrashWorkload.expect(mode == 0o600, "I8: the mode of \(path) is \(String(mode, radix: 8))")
      try CrashWorkload.expect((mirror.model.contents(of: path)?.count ?? 0) < 1 << 20, "I7: \(path) is too large")
    }
  }

  /// I5.
  private func checkSaving(_ opened: Opened, _ mirror: MirroredDirectory) throws {
    let commit = opened.report.commit.number + 1
    let record = record("after the crash", "1", at: commit)
    var expected = opened.records
    expected[record.address] = record
    do {
      try opened.backend.commit(WriteBatch(records: [record], commits: commit...commit))
      let lost = try open(MirroredDirectory(mirror.model.crashImages(limit: 1)[0].fileSystem), "I5 after power loss")
      try CrashWorkload.compare(lost.records, expected, "I5 after power loss")
      try CrashWorkload.expect(lost.report.isClean, "I5: not clean after power loss: \(lost.report)")
      try opened.backend.close()
    } catch let error as RepositoryError {
      throw Violation("I5: \(error)")
    }
    try checkFiles(mirror, isOpen: false)
    let closed = try open(MirroredDirectory(mirror.model.copy()), "I5 after closing")
    try CrashWorkload.compare(closed.records, expected, "I5 after closing")
    try CrashWorkload.expect(closed.report.isClean && closed.report.replayedCommits == 0, "I5: not clean after closing: \(closed.report)")
  }
}
