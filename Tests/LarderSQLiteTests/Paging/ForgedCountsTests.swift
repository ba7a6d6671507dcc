import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Files whose counts of records are wrong under right checksums.
@Suite("Security: forged counts", .timeLimit(.minutes(1)))
struct ForgedCountsTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  struct Count: Sendable, CustomTestStringConvertible {
    var name = "spots"
    var version: Int64 = 1
    let records: Int64
    let bytes: Int64
    var testDescription: String { "\(name) \(version): \(records), \(bytes)" }
  }

  /// The rows of a store that has three spots of three bytes each and a visit of seven.
  static let forgeries: [[Count]] = [
    [Count(records: 3, bytes: .max - 7), Count(name: "visits", records: 1, bytes: 7)],
    [Count(version: .max, records: 3, bytes: 9), Count(name: "visits", records: 1, bytes: 7)],
    [Count(version: .min, records: 3, bytes: 9), Count(name: "visits", records: 1, bytes: 7)],
    [Count(records: 1, bytes: 9), Count(name: "visits", records: 3, bytes: 7)],
    [Count(records: 3, bytes: 0), Count(name: "visits", records: 1, bytes: 16)],
    [Count(records: 4, bytes: 16)],
    [Count(name: "none", records: 4, bytes: 16)],
    [Count(version: 2, records: 3, bytes: 9), Count(name: "visits", records: 1, bytes: 7)],
  ]

  private func openPaged() throws -> (backend: SQLiteBackend, opening: PagedOpening) {
    let backend = SQLiteBackend(file: url)
    let opening = try backend.openPaged(.init()) { _ in }
    _ = try backend.recover(opening.report)
    return (backend, opening)
  }

  private func makeStore() throws {
    let backend = try openPaged().backend
    let spots = (0..<3).map { record("\($0)", "\"\($0)\"", at: 1) }
    try backend.commit(spots + [record("0", "\"visit\"", at: 1, in: "visits")], at: 1)
    try backend.close()
  }

  private func checksum(_ columns: [String]) -> UInt32 {
    RecordKey(columns.joined(separator: "|")).withBytes { CRC32C.checksum($0) }
  }

  /// Replaces the rows of the counts.
  private func forge(_ counts: [Count]) throws {
    let foreign = try ForeignDatabase(url)
    let commit = try foreign.number("SELECT commit_number FROM larder_store")
    try foreign.run("DELETE FROM larder_collections")
    for count in counts {
      let numbers = [count.version, count.records, count.bytes, commit].map(String.init)
      let crc = checksum([count.name] + numbers)
      try foreign.run("INSERT INTO larder_collections VALUES ('\(count.name)', \(numbers.joined(separator: ", ")), \(crc))")
    }
  }

  /// Replaces the number of all records.
  private func forgeTotal(_ total: Int64) throws {
    let foreign = try ForeignDatabase(url)
    func number(_ column: String) throws -> Int64 { try foreign.number("SELECT \(column) FROM larder_store") }
    let numbers = [
      "\(try number("commit_number"))", "\(try number("tombstones_since"))", "\(total)", "\(try number("tombstones"))",
      "\(UInt64(bitPattern: try number("digest")))", "\(try number("buffered"))",
    ]
    let crc = checksum([try foreign.text("SELECT id FROM larder_store", column: 0)] + numbers)
    try foreign.run("UPDATE larder_store SET records = \(total), crc = \(crc)")
  }

  @Test(arguments: forgeries) func forgedCountsEndWithTheWritesThatDisproveThem(_ counts: [Count]) throws {
    try makeStore()
    try forge(counts)
    let (backend, _) = try openPaged()
    try backend.commit([record("1", nil, at: 2), record("2", nil, at: 2), record("0", nil, at: 2, in: "visits")], at: 2)
    try backend.commit([record("new", "\"a longer value\"", at: 3), record("0", "\"00\"", at: 3)], at: 3)
    try backend.commit([record("last", "\"l\"", at: 4)], at: 4)
    try backend.close()
    for _ in 0..<2 {
      let (again, opening) = try openPaged()
      let right = CollectionSummary(name: "spots", recordCount: 3, byteCount: 23, schemaVersions: 1...1)
      #expect(opening.collections == [right] && opening.report.recordCount == 3)
      #expect(try again.keepBase().records(of: "spots", after: nil, limit: 9).map(\.key.text) == ["0", "last", "new"])
      #expect(again.verify().isSound)
      try again.close()
    }
  }

  /// A collection that has records and no count would look empty.
  @Test(arguments: [
    [Count(records: 4, bytes: 16)], [Count(records: 4, bytes: 16), Count(name: "visits", records: 0, bytes: 0)],
    [Count(name: "none", records: 4, bytes: 16)],
    [Count(records: 2, bytes: 6), Count(name: "visits", records: 1, bytes: 7), Count(name: "none", records: 1, bytes: 3)],
  ])
  func countsOfOtherCollectionsAreNotBelieved(_ counts: [Count]) throws {
    try makeStore()
    try forge(counts)
    let found = try openPaged().opening.collections.map { "\($0.name): \($0.recordCount)" }
    #expect(found.sorted() == ["spots: 3", "visits: 1"])
  }

  /// A deletion on a full disk takes its records from the counts, too.
  @Test func forgedCountsEndWithDeletionsOnAFullDisk() throws {
    try makeStore()
    try forge([Count(records: 1, bytes: 9), Count(name: "visits", records: 3, bytes: 7)])
    let (backend, _) = try openPaged()
    let deletions = (0..<3).map { record("\($0)", nil, at: 2) }
    try backend.commitOnFullDisk(WriteBatch(records: deletions, commits: 2...2, durability: .durable))
    // These records bring the count back above zero.
    try backend.commit((0..<3).map { record("\($0)", "1", at: 3) }, at: 3)
    try backend.close()
    let counts = try openPaged().opening.collections.map { "\($0.name): \($0.recordCount)" }
    #expect(counts.sorted() == ["spots: 3", "visits: 1"])
  }

  @Test(arguments: [0, 1, 5, 1 << 40, .max - 1, .max] as [Int64]) func aForgedTotalIsDamageOrEndsWithTheNextOpening(_ total: Int64) throws {
    try makeStore()
    try forge(total < 1 ? [] : [Count(records: total - 1, bytes: 9), Count(name: "visits", records: 1, bytes: 7)])
    try forgeTotal(total)
    let found = code {
      let (backend, _) = try openPaged()
      // A total within the size of the file is believed.
      try backend.commit([record("new", "\"n\"", at: 2), record("0", "\"00\"", at: 2)], at: 2)
      try backend.commit((0..<3).map { record("\($0)", nil, at: 3) }, at: 3)
      try backend.close()
    }
    #expect(found == (total == 5 ? nil : .corrupted))
    #expect(code { _ = try readBack(url) } == .corrupted)
  }

  // MARK: In a repository

  private struct Spot: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var name: String
  }

  @Test func deletingMoreRecordsThanWereCountedIsNoNegativeCount() async throws {
    let options = StoreOptions(residency: .onDisk(cache: .megabytes(1)))
    func open(_ name: String = "spots") async throws -> LocalRepository<Spot> {
      try await LocalRepository(sqliteFile: url, schema: .init(name, indexes: [.ordered(\.name)]), options: options)
    }
    for name in ["spots", "visits"] {
      let first = try await open(name)
      try await first.save(contentsOf: (0..<3).map { Spot(id: $0, name: "\($0)") })
      try await first.close()
    }
    try forge([Count(records: 1, bytes: 9), Count(name: "visits", records: 5, bytes: 7)])
    let spots = try await open()
    #expect(spots.snapshot.count == 1)
    #expect(try await spots.loadAll().count == 3)
    for id in 0..<3 { try await spots.delete(id) }
    #expect(spots.snapshot.count == 0)
    #expect(try await spots.count() == 0)
    #expect(try await spots.fetch(Query().sorted(by: \.name).limit(2)).isEmpty)
    let one = Spot(id: 4, name: "4")
    try await spots.save(one)
    #expect(try await spots.loadAll() == [one])
    try await spots.close()
    let again = try await open()
    #expect(again.openReport.recordCount == 4 && again.snapshot.count == 1)
    #expect(try await again.loadAll() == [one])
    try await again.close()
  }
}
