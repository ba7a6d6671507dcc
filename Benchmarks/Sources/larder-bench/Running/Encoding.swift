import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

/// Larder's own encoding of a record, as far as it can be measured from outside.
///
/// A save to a store that was closed encodes the record in the caller's task, and is refused then. A deletion is refused in the same way,
/// and encodes nothing: the difference of both is the encoding.
struct Encoding: Sendable {
  private let repository: LocalRepository<Place>

  init() async throws {
    repository = try await LocalRepository(inMemory: RepositorySchema("places"))
    try await repository.close()
  }

  /// Makes a contender whose turns encode some records.
  func contender(_ name: String, _ kind: Series.Kind, _ places: [Place]) -> Contender {
    Contender(name: name, kind: kind) { _ in
      let saving = try await clock.measure {
        for place in places { try await refused { try await repository.save(place) } }
      }
      let deleting = try await clock.measure {
        for place in places { try await refused { try await repository.delete(place.id) } }
      }
      return max(0, (saving - deleting).microseconds / Double(places.count))
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
