import ArgumentParser
import BenchmarkRecords
import Foundation
import Larder

/// Opens a store that is there, and prints how much memory that took: in a process of its own, because a heap does not shrink.
struct Resident: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Prints the bytes that opening a store takes.", shouldDisplay: false)

  @Option var engine: Engine
  @Option var directory: String
  @Flag var indexed = false

  func run() async throws {
    let place = URL(fileURLWithPath: directory)
    let before = try Self.resident()
    if engine == .grdb {
      let store = try await GRDBStore(in: place)
      try await print(store.find(Place.nowhere) == nil ? Self.resident() - before : 0)
    } else {
      let indexes = indexed ? Place.Indexes.four : []
      let store = try await LarderStore(engine, in: place, StoreOptions(indexing: indexed ? .eager : .onFirstNeed), indexes: indexes)
      try await print(store.find(Place.nowhere) == nil ? Self.resident() - before : 0)
      try await store.close()
    }
  }

  /// Returns the resident bytes of this process.
  static func resident() throws -> Int {
    #if os(Linux)
      let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      guard let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
        throw BenchError("expected pages in /proc/self/statm, found \(text)")
      }
      return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    #else
      throw BenchError("resident bytes are read from /proc, which only Linux has")
    #endif
  }
}

extension Place {
  /// An id that no record has.
  static let nowhere = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
}
