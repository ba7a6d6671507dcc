import CSQLite
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

/// Random histories of commits, builds, kills, suspensions and failed writes, compared with a model of the index.
@Suite("SQLite: random histories of an index", .timeLimit(.minutes(Torture.isOn ? 60 : 5)))
struct SQLiteIndexRandomTests {
  @Test func theIndexIsThatOfTheModel() throws {
    for seed in Seeds.list(Torture.count(6, full: 2_000), for: "SQLite: theIndexIsThatOfTheModel") {
      try #require(FaultyFiles.isInstalled)
      let directory = try TemporaryDirectory()
      var history = History(directory, seed)
      try history.begin()
      for step in 0..<150 {
        try history.run()
        let isRight = try history.check()
        #expect(isRight, "LARDER_SEED=\(seed), step \(step): \(history.last)")
        guard isRight else { return }
      }
      #expect(history.backend.verify().isSound, "LARDER_SEED=\(seed)")
      try history.backend.close()
    }
  }
}

/// A store with one index, and the keys that the index must have.
private struct History {
  enum Model: Equatable { case none, building(cursor: Data), complete }

  let directory: TemporaryDirectory
  private var random: SeededGenerator
  private(set) var backend: SQLiteBackend
  private let index = StoredIndexID(collection: "spots", name: "values")
  private var values: [String: Int] = [:]
  private var commit: UInt64 = 0
  private var model = Model.none
  /// Bases of earlier commits, with the keys that they must have or `nil` for no index.
  private var held: [(base: any StoredBase, keys: [Data]?)] = []
  private(set) var last = ""
  /// Whether a write has failed since the last commit, so that a log that was begun anew may have no whole transaction.
  private var hasFailed = false

  init(_ directory: TemporaryDirectory, _ seed: UInt64) {
    (self.directory, random) = (directory, SeededGenerator(seed: seed))
    backend = SQLiteBackend(file: directory.file("spots.sqlite"))
  }

  mutating func begin() throws {
    backend = SQLiteBackend(file: directory.file("spots.sqlite"))
    let opening = try backend.openPaged(StoreOptions()) { _ in }
    _ = try backend.recover(opening.report)
    held = []
  }

  private static func key(_ id: String, _ value: Int) -> Data {
    Data("\(1_000 + value)|\(id)|".utf8 + Array(repeating: 0x78, count: value))
  }

  private var keys: [Data] { values.map(Self.key).sorted { $0.precedes($1) } }

  private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  /// Runs one random step, whose writes fail in one of eight cases.
  mutating func run() throws {
    let log = directory.file("spots.sqlite").path + "-wal"
    let isFaulty = chance(8)
    let countdown = Int.random(in: 1...6, using: &random)
    let kind = Int.random(in: 0..<24, using: &random)
    last = "\(kind)\(isFaulty ? " with a fault" : "")"
    // A failed write in an opening or a suspension is for other tests.
    guard isFaulty, kind < 20 else { return try step(kind) }
    FaultyFiles.set(.init(operation: .write, countdown: countdown, result: SQLITE_FULL), at: log)
    defer { FaultyFiles.set(nil, at: log) }
    do throws(RepositoryError) { try step(kind) } catch {
      guard error.code == .full else { throw error }
      hasFailed = true
    }
  }

  private mutating func step(_ kind: Int) throws(RepositoryError) {
    switch kind {
    case 0..<10: try write()
    case 10..<16: try build()
    case 16: try drop()
    case 17: try backend.checkpoint()
    case 18, 19:
      if held.count > 5 { held.removeFirst() }
      held.append((try backend.keepBase(), model == .complete ? keys : nil))
    default: break
    }
    guard kind >= 20 else { return }
    do { try restart(kind) } catch { throw error as? RepositoryError ?? RepositoryError(.inputOutput, "\(error)", file: "") }
  }

  private mutating func restart(_ kind: Int) throws {
    if model != .complete, kind != 20 { model = .none }
    switch kind {
    case 20:
      try backend.suspend()
      try #require(try backend.resume())
      held = []
    case 21:
      try backend.close()
      try begin()
    case 22:
      let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
      backend.abandon()
      try directory.replace(with: files)
      try begin()
      // Opening then does not know whether the row of `larder_store` is that of the newest commit, and reads every record.
      if hasFailed, !backend.holdsIndex(index) { model = .none }
    default:
      try backend.close()
      guard chance(3) else { return try begin() }
      // A writer with its records in memory drops the index.
      let resident = SQLiteBackend(file: directory.file("spots.sqlite"))
      _ = try resident.openAll()
      try resident.commit([record("x", "1", at: commit + 1)], at: commit + 1)
      values["x"] = 0
      commit += 1
      model = .none
      try resident.close()
      try begin()
    }
  }

  private mutating func write() throws(RepositoryError) {
    var (next, records, edits) = (values, [String: StoredRecord](), [IndexEdit]())
    let cursor: Data? = if case .building(let cursor) = model { cursor } else { nil }
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      let id = "\(Int.random(in: 0..<400, using: &random))"
      let (old, new) = (next[id], chance(4) ? nil : Int.random(in: 0..<300, using: &random))
      next[id] = new
      records[id] = record(id, new.map(String.init), at: commit + 1)
      // A build has only the keys up to its cursor.
      func edited(_ value: Int?) -> Data? {
        let key = value.map { Self.key(id, $0) }
        guard let cursor, let key else { return key }
        return cursor.precedes(key) ? nil : key
      }
      edits.append(IndexEdit(index: index, removed: edited(old), added: edited(new)))
    }
    let isNamed = !chance(20)
    let isUnsound = chance(25)
    if isUnsound { edits.append(IndexEdit(index: index, removed: Data("none".utf8), added: nil)) }
    let batch = WriteBatch(
      records: Array(records.values), commits: commit + 1...commit + 1, durability: chance(2) ? .durable : .buffered, indexEdits: edits,
      indexes: isNamed ? [index] : [])
    try backend.commit(batch)
    (values, commit, hasFailed) = (next, commit + 1, false)
    if !isNamed || isUnsound { model = .none }
  }

  private mutating func build() throws(RepositoryError) {
    let keys = keys
    switch model {
    case .complete:
      try backend.storeBoundaries([Data()] + keys.prefix(1), of: index)
    case .none:
      let block = Array(keys.prefix(100))
      try backend.extendIndex(index, by: block, isFirst: true)
      model = .building(cursor: block.last ?? Data())
    case .building(let cursor):
      let block = Array(keys.drop { !cursor.precedes($0) }.prefix(100))
      if block.isEmpty {
        try backend.storeBoundaries([Data()], of: index)
        model = .complete
      } else {
        try backend.extendIndex(index, by: block, isFirst: false)
        model = block.last.map { .building(cursor: $0) } ?? model
      }
    }
  }

  private mutating func drop() throws(RepositoryError) {
    guard chance(4) else { return }
    try backend.dropIndex(index)
    model = .none
  }

  /// Compares the index and the held bases with the model.
  mutating func check() throws -> Bool {
    guard backend.holdsIndex(index) == (model == .complete) else { return false }
    if model == .complete {
      let base = try backend.keepBase()
      let (lower, upper) = (Self.key("", 40), Self.key("", 200))
      let part = keys.filter { !$0.precedes(lower) && $0.precedes(upper) }
      guard try base.indexKeys(of: index, from: Data(), below: nil) == keys,
        try base.indexKeys(of: index, from: lower, below: upper) == part,
        try base.indexKeyCount(of: index, from: lower, below: upper) == part.count, try !base.boundaries(of: index).isEmpty
      else { return false }
    }
    for (base, keys) in held {
      do throws(RepositoryError) {
        guard try base.indexKeys(of: index, from: Data(), below: nil) == keys else { return false }
      } catch {
        // A base that was superseded reads nothing. An index may be dropped without a commit, and a base that is pinned again then has none.
        guard error.code == .superseded || error.code == .unsupported else { throw error }
      }
    }
    return chance(20) ? backend.verify().isSound : true
  }
}
