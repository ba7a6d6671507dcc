import Foundation
import Larder
import LarderTesting
import Testing

/// A cut that was made and that nobody has heard of: opening failed, or was killed, half way.
@Suite("The report of a cut tail", .timeLimit(.minutes(15))) struct JSONFileCutTests {
  private static let main = "/data/spots.json"
  private static let journal = main + "-journal"

  private func open(_ files: SimulatedFileSystem) throws -> (backend: JSONFileBackend, report: OpenReport, count: Int) {
    let backend = JSONFileBackend(file: URL(fileURLWithPath: Self.main), fileSystem: files, tuning: .init(journalChunk: 4_096))
    var count = 0
    let report = try backend.openAndRecover(.init()) { _ in count += 1 }
    return (backend, report, count)
  }

  /// A store that was killed, with the end of its journal torn: provably in a write that was never finished, or maybe in an acknowledged
  /// one.
  private func torn(isAmbiguous: Bool) throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    let backend = try open(files).backend
    for commit in 1...3 as ClosedRange<UInt64> {
      let record = StoredRecord(
        collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
      try backend.commit(WriteBatch(records: [record], commits: commit...commit))
    }
    backend.abandon()
    var bytes = try #require(files.contents(of: Self.journal))
    let end = try #require(bytes.lastIndex { $0 != 0 })
    if isAmbiguous { bytes[end - 30] ^= 1 } else { for offset in (end - 20)...end { bytes[offset] = 0 } }
    try files.place(bytes, at: Self.journal)
    try files.syncDirectory("/data")
    return files
  }

  @Test(arguments: [false, true]) func aCutIsReportedByTheOpenThatSucceeds(_ isAmbiguous: Bool) throws {
    let stored = try torn(isAmbiguous: isAmbiguous)
    let plain = stored.copy()
    let (backend, expected, _) = try open(plain)
    let cut = try #require(expected.cutTail)
    #expect(plain.paths.contains(cut.quarantineFile) && !plain.paths.contains { $0.hasSuffix("-due") || $0.hasSuffix("-torn") })
    try backend.close()
    #expect(try open(plain).report.cutTail == nil, "once")
    for operation in 1... {
      let files = stored.copy()
      let before = files.operationCount
      files.fail(FaultPlan(.operation(before + operation), code: .inputOutput))
      let isOpen: Bool
      do { isOpen = try open(files).report.cutTail != nil } catch { isOpen = false }
      let isHit = files.operationCount >= before + operation
      files.fail()
      if !isOpen {
        // Killed or not, the next one hears of it.
        for image in Array(files.crashImages(.powerLoss, limit: 20, seed: UInt64(operation))) + Array(files.crashImages(.processKill)) {
          let (_, report, count) = try open(image.fileSystem)
          #expect(report.cutTail?.offset == cut.offset && report.cutTail?.isAmbiguous == cut.isAmbiguous, "operation \(operation)")
          #expect(report.cutTail?.byteCount == cut.byteCount && count == 2, "operation \(operation)")
          #expect(report.cutTail.map { image.fileSystem.paths.contains($0.quarantineFile) } == true, "operation \(operation)")
        }
        let (backend, report, _) = try open(files)
        #expect(report.cutTail == cut, "operation \(operation)")
        try backend.close()
        #expect(try open(files).report.cutTail == nil, "operation \(operation)")
      }
      if !isHit { break }
    }
  }

  /// The bytes of a cut are the only copy of them, so no later cut takes their name.
  @Test func noCutReplacesAnEarlierOne() throws {
    let files = SimulatedFileSystem()
    try files.createDirectory("/data")
    let quarantine = Self.main + "-quarantine-1-2"
    for name in [quarantine] + (2...999).map({ "\(quarantine)-\($0)" }) { try files.create(name).close() }
    for number in [1_000, 1_001] {
      try files.create(quarantine + "-torn").close()
      var cut = OpenReport.CutTail(file: Self.journal, offset: 2, byteCount: 1, quarantineFile: quarantine, isAmbiguous: false)
      cut.settleQuarantine(from: quarantine + "-torn", in: files)
      #expect(cut.quarantineFile == "\(quarantine)-\(number)")
    }
  }
}

@Suite("Copies of a JSON store that were cut short", .timeLimit(.minutes(15))) struct JSONFileCopyTests {
  @Test func theNextCopyToTheNameRemovesThem() throws {
    let directory = try TemporaryDirectory()
    let backend = JSONFileBackend(file: directory.file("spots.json"))
    _ = try backend.openAndRecover(.init()) { _ in }
    let cut = "copy.json-copy-0123456789abcdef-tmp"
    let others = [
      "copy.json-tmp", "copy.json-copy-0123-tmp", "copy.json-copy-0123456789abcdeg-tmp", "copy.json-copy-0123456789abcdef",
      "other.json-copy-0123456789abcdef-tmp",
    ]
    for name in others + [cut] { try Data("half".utf8).write(to: directory.file(name)) }
    // One that somebody is writing.
    let live = "copy.json-copy-00000000000000ff-tmp"
    let file = try POSIXFileSystem().create(directory.pathOfFile(live))
    try file.lock()
    try backend.backup(to: directory.file("copy.json"))
    #expect(try directory.names.sorted() == (others + [live, "copy.json", "spots.json", "spots.json-lock"]).sorted())
    try file.close()
    try FileManager.default.removeItem(at: directory.file("copy.json"))
    try backend.backup(to: directory.file("copy.json"))
    #expect(try directory.names.sorted() == (others + ["copy.json", "spots.json", "spots.json-lock"]).sorted())
    try backend.close()
  }
}
