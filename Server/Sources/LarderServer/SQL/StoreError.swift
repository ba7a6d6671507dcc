public import LarderWire

/// Error of the store.
public enum StoreError: Error, Sendable, Hashable {
  /// The rules of sync refuse a request, and the problem is the answer to its device.
  case problem(SyncProblem)
  /// The database failed. Neither its code nor its message has values of records.
  case database(code: String, message: String)
  /// The database cannot be used as it is, for example because it has newer tables.
  case unusable(ServerError)
}

/// Mistake in the arguments or files of a server, as three parts: expected, found, and advice.
public struct ServerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Description of the expected state.
  public var expected: String
  /// Description of the state that was found.
  public var found: String
  /// Advice on how to correct the mistake.
  public var advice: String

  /// Creates an error.
  public init(expected: String, found: String, advice: String) {
    (self.expected, self.found, self.advice) = (expected, found, advice)
  }

  /// Error in one line: expected …, found …: advice.
  public var description: String { "expected \(expected), found \(found): \(advice)" }
}

extension StoreError: CustomStringConvertible {
  /// Error in one line, without values of records.
  public var description: String {
    switch self {
    case .problem(let problem): problem.description
    case .database(let code, let message): "the database failed (\(code)): \(message)"
    case .unusable(let error): error.description
    }
  }
}
