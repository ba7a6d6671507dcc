/// A promise of Larder that an input has shown to be broken.
public struct BrokenPromise: Error, CustomStringConvertible {
  /// The expectation, and the finding.
  public let description: String

  init(_ description: String) { self.description = description }
}

/// Checks a promise.
/// - Throws: ``BrokenPromise`` where it does not hold.
func promise(_ holds: Bool, _ description: @autoclosure () -> String) throws {
  guard holds else { throw BrokenPromise(description()) }
}

extension Result {
  /// The value; `nil` for a failure.
  var value: Success? { if case .success(let value) = self { value } else { nil } }
}
