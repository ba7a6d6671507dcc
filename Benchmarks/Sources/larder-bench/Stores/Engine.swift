import BenchmarkReport
import Larder

/// A contender, by the word that chooses it at the command line.
enum Engine: String, CaseIterable, Sendable {
  case memory, json, sqlite, grdb
  case plainSQLite = "sqlite-c"
  case fileActor = "file-actor"
  case dictionary
  case dictionaryActor = "dictionary-actor"
  case write

  /// The engines that keep records on disk through `PlaceStore`, with a durability.
  static let onDisk: [Engine] = [.json, .sqlite, .grdb]

  var title: String {
    switch self {
    case .memory: "Larder memory"
    case .json: "Larder JSON"
    case .sqlite: "Larder SQLite"
    case .grdb: "GRDB"
    case .plainSQLite: "SQLite in C"
    case .fileActor: "actor over a file"
    case .dictionary: "dictionary"
    case .dictionaryActor: "dictionary in an actor"
    case .write: "write + fdatasync"
    }
  }

  var kind: Series.Kind {
    switch self {
    case .memory, .json, .sqlite: .larder
    case .grdb, .fileActor: .peer
    case .plainSQLite, .dictionary, .dictionaryActor, .write: .limit
    }
  }

  var summary: String {
    switch self {
    case .memory: "a repository over InMemoryBackend"
    case .json: "a repository over a JSON file and its journal"
    case .sqlite: "a repository over an SQLite file"
    case .grdb: "GRDB's DatabasePool with synchronous = FULL, columns, cached statements and the same indexes"
    case .plainSQLite: "SQLite's C functions with LarderSQLite's settings, prepared statements, bytes encoded before"
    case .fileActor: "fifty lines that keep a dictionary in an actor and rewrite one JSON file, without a sync"
    case .dictionary: "a Swift dictionary in a variable"
    case .dictionaryActor: "the same, isolated by an actor"
    case .write: "one write and one fdatasync into an allocated file"
    }
  }
}
