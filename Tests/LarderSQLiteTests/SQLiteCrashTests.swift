import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Copies of an open store's files, taken at any moment as a kill would leave them, must open with all that was acknowledged.
@Suite("SQLite: crashes", .timeLimit(.minutes(15)))
struct SQLiteCrashTests: SQLiteSuite {
  let directory: TemporaryDirectory
  let copies: TemporaryDirectory

  init() throws {
    directory = try Self.makeDirectory()
    copies = try TemporaryDirectory()
  }

  /// Opens a copy of the files as they are.
  private func reopenCopy() throws -> (report: OpenReport, contents: Contents) {
    try copies.replace(with: directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") })
    return try readBack(copies.file("spots.sqlite"))
  }

  @Test func aCopyTakenBetweenTwoCallsHoldsAllThatWasAcknowledged() throws {
    var generator = SeededGenerator("aCopyTakenBetweenTwoCallsHoldsAllThatWasAcknowledged")
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(limits: .init(tombstones: 10_000)))
    var expected: Contents = [:]
    var number: UInt64 = 0
    for step in 0..<150 {
      switch generator.next() % 12 {
      case 0: try backend.checkpoint()
      case 1: try backend.flush()
      default:
        var records: [StoredRecord] = []
        let first = number + 1
        for _ in 0...(generator.next() % 4) {
          number += 1
          let key = "spot-\(generator.next() % 30)"
          let size = Int(generator.next() % 3_000)
          let value = generator.next() % 4 == 0 ? nil : "\"" + String(repeating: "v", count: size) + "\""
          records.append(record(key, value, at: number, in: generator.next() % 3 == 0 ? "notes" : "spots"))
        }
        try backend.commit(
          WriteBatch(records: records, commits: first...number, durability: generator.next() % 2 == 0 ? .durable : .buffered))
        for record in records { expected[record.address] = text(record) }
      }
      if step % 3 == 0 {
        let (report, contents) = try reopenCopy()
        #expect(contents == expected, "step \(step)")
        #expect(report.commit == Revision(number) && report.isClean)
      }
    }
    try backend.close()
    #expect(try readBack(url).contents == expected)
  }

  /// Every write to the log and the database, cut off there for ever, as a kill does.
  @Test func aKillAtAnyWriteLeavesABatchWholeOrNotAtAll() throws {
    let main = url.resolvingSymlinksInPath().path
    var images = 0
    for (path, operation) in [(main + "-wal", FaultyFiles.Operation.write), (main, .write), (main + "-wal", .sync), (main, .sync)] {
      for countdown in 1...40 {
        try directory.replace(with: [:])
        var acknowledged: Contents = [:]
        var attempted: Contents = [:]
        var failed = false
        do {
          let backend = SQLiteBackend(file: url)
          _ = try backend.openAll()
          FaultyFiles.set(.init(operation: operation, countdown: countdown, result: SQLITE_IOERR | 3 << 8, lasts: true), at: path)
          defer { FaultyFiles.set(nil, at: path) }
          do {
            for number: UInt64 in 1...6 {
              let records = (0..<3).map { record("\(Int(number) % 4)-\($0)", "\"\(number)\"", at: number) } + [record("x", nil, at: number)]
              attempted = acknowledged
              for record in records { attempted[record.address] = text(record) }
              try backend.commit(records, at: number)
              acknowledged = attempted
              if number % 2 == 0 { try backend.checkpoint() }
            }
          } catch {
            failed = true
          }
          let (_, contents) = try reopenCopy()
          images += 1
          #expect(contents == acknowledged || contents == attempted, "\(operation) \(countdown) of \(path)")
        }
        if !failed { break }
      }
    }
    print("figures: images of kills: \(images)")
    #expect(images > 40)
  }

  @Test func aKillAtAnyStepOfCreationLeavesNoStoreOrAWholeOne() throws {
    let draft = url.resolvingSymlinksInPath().path + "-new"
    for suffix in ["", "-journal", "-wal"] {
      for operation in [FaultyFiles.Operation.write, .sync] {
        for countdown in 1...30 {
          try directory.replace(with: [:])
          FaultyFiles.set(.init(operation: operation, countdown: countdown, result: SQLITE_IOERR | 3 << 8, lasts: true), at: draft + suffix)
          let failed = code { _ = try readBack(url) } != nil
          FaultyFiles.set(nil, at: draft + suffix)
          #expect(try directory.contents().keys.allSatisfy { $0 == "spots.sqlite" })
          #expect(try readBack(url).report.isNew == failed)
          if !failed { break }
        }
      }
    }
  }
}
