import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@_spi(Inspection) @testable import LarderSQLite

@Suite("SQLite: inspection beside a writer", .timeLimit(.minutes(15)))
struct InspectionTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// A disk that gives one byte too few at a read of the log: at one of them, behind which something else happens, or from that one on.
  private struct Files: ForwardingFileSystem {
    let base: any FileSystem = POSIXFileSystem()
    let meanwhile: (@Sendable () throws(RepositoryError) -> Void)?
    /// The number of that read, from 1 on.
    let number: Int
    let reads = Reads()

    func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
      guard let file = try base.open(path, writable: writable), path.hasSuffix("-wal") else {
        return try base.open(path, writable: writable)
      }
      return File(base: file, files: self)
    }
  }

  private final class Reads: Sendable {
    private let count = Mutex(0)
    func next() -> Int {
      count.withLock { count in
        count += 1
        return count
      }
    }
  }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let files: Files

    init(base: any OpenFile, files: Files) { (self.base, self.files) = (base, files) }

    func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
      let bytes = try base.read(at: offset, count: count)
      let number = files.reads.next()
      guard let meanwhile = files.meanwhile else { return number < files.number ? bytes : bytes.dropLast() }
      guard number == files.number else { return bytes }
      try meanwhile()
      return bytes.dropLast()
    }
  }

  /// A read gives less than it was asked for, and a writer commits before the size is asked for; the writer is in this process so that its
  /// moment is certain.
  @Test(arguments: 1...8) func aLogThatGrowsWhileItIsReadIsNoDamage(_ number: Int) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    let files = Files(
      meanwhile: { () throws(RepositoryError) in try backend.commit([record("a", "4", at: 4)], at: 4) }, number: number)
    let (report, tail) = try SQLiteInspection(file: url, fileSystem: files).verify()
    #expect(report.problems.isEmpty && tail == nil, "\(report)")
    #expect(try SQLiteInspection(file: url).verify().report.commit == Revision(4), "the read was never made")
    try backend.close()
  }

  @Test func aDiskThatGivesTooLittleIsReported() throws {
    try makeUnclosedStore()
    let files = Files(meanwhile: nil, number: 5)
    #expect(try SQLiteInspection(file: url, fileSystem: files).verify().report.problems.map(\.code) == [.inputOutput])
  }
}
