import Foundation
import Synchronization

/// A JSON document of everything, written anew for each step, as many apps keep their settings.
final class FilePeer: Subject {
  enum Way {
    /// `Data.write` with `.atomic`, and without.
    case foundationAtomic, foundation
    /// A file beside the old one that is renamed, or the old one; neither is synced.
    case renamed, rewritten
  }

  private let file: URL
  private let way: Way
  private let current: Mutex<Contents>

  init(_ directory: URL, _ way: Way) throws {
    file = directory.appendingPathComponent("entries.json")
    self.way = way
    current = Mutex(try Self.read(file))
  }

  private static func read(_ file: URL) throws -> Contents {
    guard FileManager.default.fileExists(atPath: file.path) else { return [:] }
    let bytes = try Data(contentsOf: file)
    do {
      return try JSONDecoder().decode(Contents.self, from: bytes)
    } catch {
      throw Failure("\(bytes.count) bytes that are no document, \(bytes.count { $0 == 0 }) of them zero")
    }
  }

  func write(_ step: Step) async throws {
    try current.withLock { contents in
      contents = step.applied(to: contents)
      let bytes = try JSONEncoder().encode(contents)
      switch way {
      case .foundationAtomic: try bytes.write(to: file, options: .atomic)
      case .foundation: try bytes.write(to: file)
      case .renamed:
        let beside = file.appendingPathExtension("new")
        try Self.writeUnsynced(bytes, to: beside)
        if rename(beside.path, file.path) != 0 { throw Failure("rename: \(errno)") }
      case .rewritten: try Self.writeUnsynced(bytes, to: file)
      }
    }
  }

  private static func writeUnsynced(_ bytes: Data, to file: URL) throws {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { throw Failure("open: \(errno)") }
    let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    Foundation.close(descriptor)
    if count != bytes.count { throw Failure("write: \(count) of \(bytes.count) bytes") }
  }

  func contents() async throws -> Contents { try Self.read(file) }

  func close() async throws {}
}
