import Foundation
import Testing

/// The files of a store that somebody, or chance, has made to do harm.
struct HostileStore: Sendable, CustomStringConvertible {
  /// Where it is from.
  let description: String
  /// The bytes of its files by name.
  let files: DamagePlan.Contents
  /// The name of the main file, whether or not it is there.
  let main: String

  /// Writes the files to a folder of their own.
  func place() throws -> (store: String, folder: Workspace) {
    let folder = try Workspace()
    for (name, bytes) in files { try Data(bytes).write(to: folder.url(name)) }
    return (folder.path(main), folder)
  }

  private static let root = URL(filePath: #filePath).appending(path: "../../../../..").standardizedFileURL
  private static let fixtures = root.appending(path: "Tests/LarderSQLiteTests/Fixtures/format-1")

  private static func inputs(_ corpus: String) throws -> [(name: String, bytes: [UInt8])] {
    let folder = root.appending(path: "Fuzzing/Corpora/\(corpus)")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
      ("\(corpus)/\($0)", [UInt8](try Data(contentsOf: folder.appending(path: $0))))
    }
  }

  /// Every input that fuzzing keeps for the files of stores, as the files that it stands for there.
  static func corpora() throws -> [HostileStore] { try mainFiles() + journals() + plans() }

  /// The first byte says whether the checksums of the rest are mended; both the rest and the whole input are tried.
  private static func mainFiles() throws -> [HostileStore] {
    try inputs("main-file").flatMap { name, bytes in
      let rest = Array(bytes.dropFirst())
      return [("", bytes), ("without the first byte", rest), ("mended", MainFileRepair.mend(rest))].map {
        HostileStore(description: "\(name) \($0.0)", files: ["s.json": $0.1], main: "s.json")
      }
    }
  }

  /// Each journal alone, and beside each main file: that of its own store, and those of others.
  private static func journals() throws -> [HostileStore] {
    let mains = try ["clean", "crashed", "crashed-before-a-checkpoint"].map { name in
      (name, [UInt8](try Data(contentsOf: fixtures.appending(path: "\(name)/\(name).json"))))
    }
    return try inputs("journal").flatMap { name, bytes in
      var journal = Array(bytes.dropFirst())
      if bytes.first.map({ $0 & 1 == 1 }) == true { JournalRepair.mend(&journal, extending: bytes.first.map { $0 & 2 == 2 } == true) }
      let alone = HostileStore(description: "\(name) alone", files: ["s.json-journal": journal], main: "s.json")
      return [alone]
        + mains.map {
          HostileStore(description: "\(name) beside \($0.0)", files: ["s.json": $0.1, "s.json-journal": journal], main: "s.json")
        }
    }
  }

  /// Inputs that say what is committed, and how the files of the store are damaged then.
  private static func plans() throws -> [HostileStore] {
    try inputs("recovery").map { name, bytes in
      let files = try bytes.withUnsafeBytes { try RecoveryTarget.damage($0) }.contents
      return HostileStore(description: name, files: files, main: "s.json")
    }
      + inputs("sqlite").map { name, bytes in
        let files = try bytes.withUnsafeBytes { try SQLiteTarget.damage($0) }.contents
        return HostileStore(description: name, files: files, main: "s.sqlite")
      }
  }
}
