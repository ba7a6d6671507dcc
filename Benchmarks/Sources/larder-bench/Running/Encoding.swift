import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

/// Larder's own encoding of a record, as far as it can be measured from outside.
///
/// A save to a store that was closed encodes its records in the caller's task, and is refused then. Each save is of 512 records, which are
/// encoded on one core: what the refusal and the change of tasks take is spread over them.
struct Encoding: Sendable {
  private let repository: LocalRepository<Place>

  init() async throws {
    repository = try await LocalRepository(inMemory: RepositorySchema("places"))
    try await repository.close()
  }

  /// Makes a contender whose turns encode some records.
  func contender(_ name: String, _ kind: Series.Kind, _ places: [Place]) -> Contender {
    let groups = stride(from: 0, to: places.count, by: 512).map { Array(places[$0..<min($0 + 512, places.count)]) }
    return .timed(name, kind, operations: places.count) { _ in
      for group in groups { try await refused { try await repository.save(contentsOf: group) } }
    }
  }

  private func refused(_ write: () async throws -> Void) async throws {
    do {
      try await write()
    } catch RepositoryError.Code.closed {
      return
    }
    throw BenchError("expected a closed store to refuse a write, found it done")
  }
}
