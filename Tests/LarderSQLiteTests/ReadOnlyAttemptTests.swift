import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: a reader beside a log that comes and goes", .timeLimit(.minutes(15))) struct ReadOnlyAttemptTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Files among which a log is found at some of the first looks for it.
  private final class FlickeringLog: ForwardingFileSystem {
    let base: any FileSystem = POSIXFileSystem()
    /// Results of the next looks for the log: true for a look that finds a log.
    ///
    /// Looks behind the end of this list find none.
    private let looks: Mutex<[Bool]>
    private let count = Mutex(0)

    init(_ looks: [Bool]) { self.looks = Mutex(looks) }

    func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
      guard path.hasSuffix("-wal") else { return try base.open(path, writable: writable) }
      // A reader that never ends would hang the test.
      let isEndless = count.withLock { count in
        count += 1
        return count > 200
      }
      if isEndless { throw RepositoryError(.inputOutput, "the reader looks for the log without end") }
      let isFound = looks.withLock { $0.isEmpty ? false : $0.removeFirst() }
      // The database itself stands in for a log: it is not empty.
      return isFound ? try base.open(String(path.dropLast("-wal".count)), writable: false) : nil
    }
  }

  /// Damage that is found while a log comes and goes is reported in the end.
  @Test(arguments: 0..<6) func damageIsReported(_ first: Int) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...50 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    try backend.close()
    var database = try Data(contentsOf: url)
    database.replaceSubrange(4_096..<database.count, with: Data(repeating: 0xFF, count: database.count - 4_096))
    try database.write(to: url)
    // A look without a log, then one with it, beginning with each of the reader's looks.
    let looks = Array(repeating: false, count: first) + [false, true, false, true]
    let reader = SQLiteBackend(file: url, fileSystem: FlickeringLog(looks))
    let error = code { _ = try reader.open(StoreOptions(access: .readOnly)) { _ in } }
    #expect(error == .corrupted)
    reader.abandon()
  }
}
