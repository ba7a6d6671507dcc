package import Larder

/// The code of the error that a task ends with, if it does.
package func code<Output>(of task: Task<Output, any Error>) async -> RepositoryError.Code? {
  do {
    _ = try await task.value
    return nil
  } catch {
    return (error as? RepositoryError)?.code
  }
}

/// The code of the error that an operation throws, if it does.
package func code(_ operation: () async throws -> Void) async -> RepositoryError.Code? {
  do {
    try await operation()
    return nil
  } catch {
    return (error as? RepositoryError)?.code
  }
}
