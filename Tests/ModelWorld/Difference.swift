internal import Larder

/// A thing that a store did and the model did not.
package struct Difference: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Throws the difference unless the condition holds.
func expect(_ condition: Bool, _ seen: @autoclosure () -> String) throws {
  if !condition { throw Difference(seen()) }
}

/// Returns what an operation returns, or the code of the store's error that it throws.
func attempt<Value>(_ body: () async throws -> Value) async throws -> (value: Value?, code: RepositoryError.Code?) {
  do {
    return (try await body(), nil)
  } catch let error as RepositoryError {
    return (nil, error.code)
  }
}
