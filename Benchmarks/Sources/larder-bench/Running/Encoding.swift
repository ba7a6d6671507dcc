import BenchmarkRecords
import Larder

/// Larder's own encoding of a record, as far as it can be measured from outside.
///
/// A save to a store that was closed encodes the record in the caller's task, and is refused then. The error makes it a little dearer than
/// encoding alone.
struct Encoding: Sendable {
  private let repository: LocalRepository<Place>

  init() async throws {
    repository = try await LocalRepository(inMemory: RepositorySchema("places"))
    try await repository.close()
  }

  func encode(_ place: Place) async throws {
    do {
      try await repository.save(place)
    } catch let error where error.code == .closed {
      return
    }
    throw BenchError("expected a closed store to refuse a record, found it saved")
  }
}
