import Foundation
import Larder
import TestSupport

@testable import LarderSQLite

/// A program that uses a SQLite store, and the files that it finds: each call of the seam in it can be failed.
struct SQLiteSeamScenario: Sendable, CustomStringConvertible {
  enum Step: Sendable {
    case open
    /// Saves keys, or deletes those that start with "-", in one batch.
    case save([String], Durability = .durable)
    case flush
    case checkpoint
    case close
    /// Suspends the store, or takes its locks again.
    case suspend, resume
    /// Leaves the files as a killed process does.
    case kill
    /// Opens the store for reading, beside the writer if there is one, looks for foreign commits, and verifies.
    case read
    /// Reads the store as the tool does.
    case inspect
    /// Copies the store and reads the copy.
    case backup
    /// Makes the next call of a kind fail, as a part of the program: on the file with this ending.
    case fail(SeamCall, String, Int32)
    /// Makes the next read of the file with this ending give half of its bytes, as a part of the program.
    case shorten(String)
  }

  let name: String
  var options = StoreOptions()
  /// The files that are there, by their paths below the directory of the test.
  var files: [String: Data] = [:]
  /// The names of files that are not the store's, and stay.
  var others: Set<String> = []
  let steps: [Step]

  var description: String { name }

  static let store = "app/spots.sqlite"
  static let copy = "copies/spots.sqlite"
  /// A disk with so much room that a folded log keeps its space, whatever disk the tests run on.
  static let disk = SQLiteDisk { _ in 1 << 40 }

  /// All scenarios; making their files takes some stores.
  static func all() throws -> [SQLiteSeamScenario] {
    let (closed, killed, folded) = (try files([.open, .save(["a", "b"]), .close]), try killedFiles(), try foldedFiles())
    return [
      SQLiteSeamScenario(
        name: "a new store",
        steps: [.open, .save(["a", "b"]), .save(["c"], .buffered), .flush, .read, .checkpoint, .save(["-a"]), .read, .close, .read]),
      SQLiteSeamScenario(
        name: "killed and opened again", files: killed, steps: [.read, .open, .save(["d"]), .read, .kill, .open, .close]),
      SQLiteSeamScenario(name: "leftovers of creations", files: leftovers, steps: [.open, .save(["a"]), .close]),
      SQLiteSeamScenario(
        name: "leftovers beside a store", files: closed.merging(leftovers) { $1 }.merging(Self.foreign(closed)) { $1 },
        others: ["app/spots.sqlite-new6", "app/spots.sqlite-new7-journal"], steps: [.open, .save(["c"]), .close]),
      SQLiteSeamScenario(
        name: "a torn log", files: torn(killed), steps: [.read, .open, .save(["d"]), .kill, .open, .close]),
      SQLiteSeamScenario(
        name: "a torn log on a broken disk", files: torn(killed),
        steps: [.fail(.rename, "-due", EIO), .open, .fail(.create, "-tmp", ENOSPC), .open, .save(["d"]), .close]),
      SQLiteSeamScenario(
        name: "a log that grows while it is read", files: killed, steps: [.shorten("-wal"), .open, .save(["d"]), .close]),
      SQLiteSeamScenario(
        name: "a folded log", files: folded, steps: [.read, .open, .save(["d"]), .checkpoint, .kill, .open, .close, .read]),
      SQLiteSeamScenario(name: "a folded log with half a header", files: withoutHeader(folded), steps: [.open, .save(["d"]), .close]),
      SQLiteSeamScenario(
        name: "a cut that nobody was told of", files: closed.merging(unreported) { $1 },
        steps: [.fail(.rename, "-quarantine-#-#", EIO), .open, .save(["d"]), .close, .open, .close]),
      SQLiteSeamScenario(
        name: "an empty rollback journal", files: closed.merging([store + "-journal": Data(count: 512)]) { $1 },
        others: [store + "-journal"], steps: [.open, .save(["c"]), .close, .read]),
      SQLiteSeamScenario(
        name: "copies", files: closed.merging(interruptedCopy) { $1 },
        steps: [.open, .backup, .save(["c"]), .fail(.rename, "/copies/spots.sqlite", EIO), .backup, .backup, .close]),
      SQLiteSeamScenario(name: "the first copy in a directory", files: closed, steps: [.open, .backup, .close]),
      SQLiteSeamScenario(
        name: "shared", options: StoreOptions(access: .shared, lockTimeout: .milliseconds(50)), files: closed,
        steps: [.open, .save(["c"]), .read, .kill, .open, .save(["d"]), .close]),
      SQLiteSeamScenario(
        name: "suspended", files: closed,
        steps: [.open, .save(["c"]), .save(["d"], .buffered), .suspend, .read, .resume, .save(["e"]), .suspend, .resume, .close]),
      SQLiteSeamScenario(
        name: "shared and suspended", options: StoreOptions(access: .shared, lockTimeout: .milliseconds(50)), files: closed,
        steps: [.open, .save(["c"]), .suspend, .resume, .save(["d"]), .close]),
      SQLiteSeamScenario(name: "the tool", files: killed, steps: [.inspect, .open, .close, .inspect]),
      SQLiteSeamScenario(name: "the tool on a torn log", files: torn(killed), steps: [.inspect]),
    ]
  }

  // MARK: Files

  /// Returns the files that steps leave.
  private static func files(_ steps: [Step]) throws -> [String: Data] {
    let trial = try SQLiteSeamTrial(SQLiteSeamScenario(name: "preparation", steps: steps))
    for step in steps { try trial.apply(step) }
    return try trial.place.files()
  }

  private static func killedFiles() throws -> [String: Data] {
    try files([.open, .save(["a", "b"]), .save(["c", "-a"]), .save(["b"]), .kill])
  }

  private static func foldedFiles() throws -> [String: Data] {
    try files([.open, .save(["a", "b"]), .save(["c", "-a"]), .checkpoint, .kill])
  }

  /// The last frame of the log is cut short.
  private static func torn(_ files: [String: Data]) -> [String: Data] {
    var files = files
    files[store + "-wal"]?.removeLast(100)
    return files
  }

  /// The mark of a folded log is broken, as by a kill in the middle of the header that is written over it.
  private static func withoutHeader(_ files: [String: Data]) -> [String: Data] {
    var files = files
    if var log = files[store + "-wal"] {
      log.replaceSubrange(0..<4, with: [0x37, 0x7F, 0x06, 0x82])
      files[store + "-wal"] = log
    }
    return files
  }

  private static let journalStart = Data([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])

  /// The files that kills and power cuts leave of creations.
  private static let leftovers: [String: Data] = [
    store + "-new": Data(count: 4_096), store + "-new-journal": journalStart + Data(count: 504), store + "-new-wal": Data(),
    store + "-new-shm": Data(count: 8), store + "-new2-journal": journalStart + Data(count: 504), store + "-new3": Data("SQ".utf8),
    store + "-new5-shm": Data(count: 32_768),
  ]

  /// Files with the names of drafts that are other programs' own: a closed store, and a journal that SQLite did not write.
  private static func foreign(_ closed: [String: Data]) -> [String: Data] {
    [store + "-new6": closed[store] ?? Data(), store + "-new7-journal": Data("diary, and more of it".utf8)]
  }

  private static let unreported = [store + "-quarantine-1-4152-due": Data(count: 5_000)]

  private static let interruptedCopy = [
    copy + "-copy-0123456789abcdef-tmp": Data(count: 4_096), copy + "-copy-0123456789abcdef-tmp-journal": Data(count: 512),
  ]
}
