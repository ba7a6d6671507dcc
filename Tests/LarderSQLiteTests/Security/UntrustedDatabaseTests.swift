import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Databases that somebody has prepared: nothing in them runs, and each is refused or read within its limits.
@Suite("Security: untrusted SQLite files", .timeLimit(.minutes(15)))
struct UntrustedDatabaseTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func makeStore() throws {
    try directory.replace(with: [:])
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<3).map { record("\($0)", "{\"n\":\($0)}", at: 1) }, at: 1)
    try backend.close()
  }

  /// Opens in every mode; expects one code, and that no byte has changed.
  private func expectRefusal(_ expected: Set<RepositoryError.Code>, _ what: String) throws {
    let before = try directory.contents()
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      let found = code { _ = try readBack(url, StoreOptions(access: access)) }
      #expect(found.map(expected.contains) == true, "\(what), \(access): \(String(describing: found))")
      #expect(try directory.contents() == before, "\(what), \(access)")
    }
  }

  /// Schemas that make SQLite compute, write or read elsewhere when a plain table would only be read.
  @Test(arguments: HostileSchemas.otherShapes)
  func aSchemaOfAnotherShapeIsRefused(_ sql: String) throws {
    try makeStore()
    do { try ForeignDatabase(url).run(sql) }
    try expectRefusal([.corrupted], String(sql.prefix(60)))
  }

  /// The changes that `writable_schema` allows to the schema's own text.
  @Test(arguments: HostileSchemas.writtenByHand)
  func aSchemaThatWasWrittenByHandIsRefused(_ sql: String) throws {
    try makeStore()
    do {
      let foreign = try ForeignDatabase(url)
      foreign.allowSchemaChanges()
      try foreign.run("PRAGMA writable_schema = ON; \(sql)")
    }
    try expectRefusal([.corrupted, .notOurStore], String(sql.prefix(80)))
  }

  /// Tables, triggers and views of other programs are let be, and never run.
  @Test(arguments: HostileSchemas.additions)
  func whatOthersAddedDoesNotRun(_ sql: String) throws {
    try makeStore()
    do {
      let foreign = try ForeignDatabase(url)
      foreign.allowSchemaChanges()
      try foreign.run(sql)
    }
    for access in [StoreOptions.Access.exclusive, .shared] {
      let backend = SQLiteBackend(file: url)
      let next = try backend.openAll(StoreOptions(access: access)).report.commit.number + 1
      _ = try backend.beginCommit(after: Revision(next - 1), .durable)
      try backend.commit([record("new", "1", at: next), record("0", "1", at: next), record("gone", nil, at: next)], at: next)
      #expect(backend.verify().isSound, "\(access)")
      try backend.close()
    }
    #expect(try readBack(url, StoreOptions(access: .readOnly)).contents.values.count { $0 != "deleted" } >= 4)
  }

  /// Pages of every size are read; a header that lies about itself is refused.
  @Test(arguments: [512, 1_024, 65_536]) func aPageMayHaveAnySize(_ size: Int) throws {
    try makeStore()
    do { try ForeignDatabase(url).run("PRAGMA journal_mode = DELETE; PRAGMA page_size = \(size); VACUUM; PRAGMA journal_mode = WAL") }
    for access in [StoreOptions.Access.exclusive, .readOnly] {
      #expect(try readBack(url, StoreOptions(access: access)).contents.count == 3)
    }
    var bytes = try Data(contentsOf: url)
    for (high, low) in [(0, 0), (0, 2), (3, 0), (255, 255)] as [(UInt8, UInt8)] {
      bytes.replaceSubrange(16..<18, with: [high, low])
      try bytes.write(to: url)
      try expectRefusal([.corrupted, .notOurStore], "page size \(high) \(low)")
    }
  }

  /// A row whose header says that it is longer than its page, or the file.
  @Test func anOverlongRowIsDamage() throws {
    try makeStore()
    let whole = try Data(contentsOf: url)
    let text = Data("{\"n\":1}".utf8)
    let value = try #require(whole.range(of: text)).lowerBound
    // Before the value: its columns, and before these the length of the row and of its header.
    for offset in 1...14 {
      for byte in [UInt8(0xFF), 0x81, 0x7F] {
        var bytes = whole
        bytes[value - offset] = byte
        guard bytes != whole else { continue }
        try bytes.write(to: url)
        try expectRefusal([.corrupted], "\(byte) at \(offset) before a value")
      }
    }
  }

  @Test func aSchemaOfAHundredThousandTablesIsRead() throws {
    try makeStore()
    let count = Torture.count(5_000, full: 100_000)
    do {
      let foreign = try ForeignDatabase(url)
      try foreign.run("BEGIN")
      for number in 0..<count { try foreign.run("CREATE TABLE \"t\(number)\" (x)") }
      try foreign.run("COMMIT")
    }
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      #expect(try readBack(url, StoreOptions(access: access)).contents.count == 3, "\(count) tables")
    }
  }

  /// SQL of a key or a value is text and nothing else.
  @Test func whatLooksLikeSQLIsText() throws {
    let texts = ["'; DROP TABLE spots; --", "\"", "') OR 1=1 --", "%", "_", "?1", ":id", "\0", "x'00'", "NULL"]
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit(texts.map { record($0, "\"ok\"", at: 1) }, at: 1)
    try backend.close()
    let found = try readBack(url).contents
    #expect(Set(found.keys.map(\.key)) == Set(texts.map { RecordKey($0) }) && found.count == texts.count)
  }
}
