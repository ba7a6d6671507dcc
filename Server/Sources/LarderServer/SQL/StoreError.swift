public import LarderSync

/// A failure of the store.
public enum StoreError: Error, Sendable, Hashable {
  /// The answer to a device whose request the rules refuse.
  case problem(SyncProblem)
  /// The database failed: its code, and what it says; neither has values of records.
  case database(code: String, message: String)
  /// The database cannot be used as it is.
  case unusable(ServerError)
}

/// A mistake in what a server was given: what was expected, what was found, and what to do.
public struct ServerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The form that was expected.
  public var expected: String
  /// The thing that was found in its place.
  public var found: String
  /// The way out.
  public var advice: String

  /// Makes an error.
  public init(expected: String, found: String, advice: String) {
    (self.expected, self.found, self.advice) = (expected, found, advice)
  }

  /// The error in one line.
  public var description: String { "expected \(expected), found \(found): \(advice)" }
}

extension StoreError: CustomStringConvertible {
  /// The error in one line, without values of records.
  public var description: String {
    switch self {
    case .problem(let problem): problem.description
    case .database(let code, let message): "the database failed (\(code)): \(message)"
    case .unusable(let error): error.description
    }
  }
}
