import Foundation

/// A way to keep values in a directory, whose promises a power cut tests.
protocol Subject: AnyObject, Sendable {
  /// Writes a step, and returns when it counts as kept; one without changes tidies up.
  func write(_ step: Step) async throws
  /// Reads everything back, and throws where it is damaged.
  func contents() async throws -> Contents
  func close() async throws
}

/// A row of the table: a subject, and what is promised of it.
enum Row: String, CaseIterable {
  case larderJSON = "larder-json"
  case larderSQLite = "larder-sqlite"
  case larderBlobs = "larder-blobs"
  /// A rollback journal, and `synchronous=FULL`.
  case sqliteDefaults = "sqlite-defaults"
  /// A rollback journal whose directory is synced as well, which loses nothing: a control.
  case sqliteExtra = "sqlite-extra"
  /// A write-ahead log with `synchronous=NORMAL`.
  case sqliteWAL = "sqlite-wal-normal"
  /// A write-ahead log with `synchronous=FULL`.
  case sqliteWALFull = "sqlite-wal-full"
  /// A document that `Data.write` writes, with `.atomic` and without.
  case foundationAtomic = "data-write-atomic"
  case foundationPlain = "data-write"
  /// A document that is written beside the old one and renamed, or over it, without a sync.
  case renamedFile = "renamed-unsynced"
  case rewrittenFile = "rewritten-unsynced"

  /// Whether nothing that was acknowledged may be lost.
  var isLarder: Bool { self == .larderJSON || self == .larderSQLite || self == .larderBlobs }
  /// The number of tasks that write at once.
  var tasks: Int { isLarder ? 3 : 1 }
  /// Whether a step can change one key only.
  var isSingle: Bool { self == .larderBlobs }

  func open(_ directory: URL) async throws -> any Subject {
    switch self {
    case .larderJSON: try await LarderRecords(directory, isJSON: true)
    case .larderSQLite: try await LarderRecords(directory, isJSON: false)
    case .larderBlobs: try await LarderBlobFiles(directory)
    case .sqliteDefaults: try SQLitePeer(directory, pragmas: nil)
    case .sqliteExtra: try SQLitePeer(directory, pragmas: "PRAGMA synchronous=EXTRA")
    case .sqliteWALFull: try SQLitePeer(directory, pragmas: "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    case .sqliteWAL: try SQLitePeer(directory, pragmas: "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
    case .foundationAtomic: try FilePeer(directory, .foundationAtomic)
    case .foundationPlain: try FilePeer(directory, .foundation)
    case .renamedFile: try FilePeer(directory, .renamed)
    case .rewrittenFile: try FilePeer(directory, .rewritten)
    }
  }
}

/// The description of what went wrong.
struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
