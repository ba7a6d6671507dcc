package import Larder

/// Output for an error: code, file, offset and advice.
package struct ErrorReport: Answer {
  private let error: RepositoryError

  /// Creates the report of an error.
  package init(_ error: RepositoryError) { self.error = error }

  /// Returns the error, and on a second line the advice for its code.
  package func lines(width: Int?) -> [String] {
    ["larder: \(error)"] + (Self.advice(for: error.code).map { ["  \($0)"] } ?? [])
  }

  /// JSON object `error` with `code`, `message`, `file`, `offset`, `keyHash` and `advice`.
  package var json: JSONValue {
    var body = JSONObject()
    body["code"] = JSONValue(error.code.description)
    body["message"] = JSONValue(error.message)
    body["file"] = error.file.map { JSONValue($0) }
    body["offset"] = error.offset.map { JSONValue($0) }
    body["keyHash"] = error.keyHash.map { JSONValue($0) }
    body["advice"] = Self.advice(for: error.code).map { JSONValue($0) }
    return ["error": .object(body)]
  }

  /// Returns advice for an error code.
  ///
  /// `nil` if errors of that code have the advice in their message.
  static func advice(for code: RepositoryError.Code) -> String? {
    switch code {
    case .corrupted: "Keep a copy of all files of the store, then restore a backup, or run `larder repair` on the copy."
    case .newerSchema: "Use a newer version of this tool; the file is fine."
    case .notOurStore: "Check the path: another program has written this file."
    case .dataMissing: "Check the path, and whether all files of the store were copied together."
    case .protectedDataUnavailable: "Check the permissions of the file and its directory."
    case .locked: "Close the app that has the store open, then run this again."
    case .inputOutput: "Check the disk, then run this again."
    case .full: "Free some space, then run this again."
    default: nil
    }
  }
}
