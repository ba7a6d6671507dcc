public import Foundation

/// A system call that failed, by name and `errno`.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The call, such as "fdatasync".
  public let call: String
  /// The value of `errno` after it.
  public let errorNumber: Int32

  /// Makes the description of a failed call.
  public init(call: String, errorNumber: Int32) {
    self.call = call
    self.errorNumber = errorNumber
  }

  /// The call and the system's words for the error.
  public var description: String { "\(call): \(String(cString: strerror(errorNumber)))" }
}

extension SystemCallError: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}

extension RepositoryError {
  /// Whether a file could not be opened, so that nothing was done with it.
  var isOfOpening: Bool { (underlying as? SystemCallError)?.call == "open" }

  /// Returns the error for a system call that failed on a file.
  static func system(_ call: String, _ errorNumber: Int32, file: String, offset: Int? = nil) -> RepositoryError {
    let code: Code =
      switch errorNumber {
      case ENOSPC, EDQUOT, EFBIG: .full
      case EACCES, EPERM: .protectedDataUnavailable
      case ELOOP: .unsupported
      default: .inputOutput
      }
    let cause = SystemCallError(call: call, errorNumber: errorNumber)
    let message = errorNumber == ELOOP ? "symbolic links are not followed" : "the system refused \(cause) (errno \(errorNumber))"
    return RepositoryError(code, message, file: file, offset: offset.map(UInt64.init), underlying: cause)
  }
}
