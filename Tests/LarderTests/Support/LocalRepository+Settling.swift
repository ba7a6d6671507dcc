@testable import Larder

extension LocalRepository {
  /// Returns when all observers have been told of everything that was committed.
  func settle() async throws {
    try await flush()  // behind the announcement of the last commit
    await core.hub.settle()
  }
}
