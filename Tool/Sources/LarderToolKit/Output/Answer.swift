@_spi(Inspection) package import Larder

/// Output of a command, as text for people and as JSON for programs.
package protocol Answer: Sendable {
  /// Returns the lines of the text form.
  /// - Parameter width: Columns of the terminal. `nil` if the output is not a terminal, and then no line is cut.
  func lines(width: Int?) -> [String]

  /// The JSON form. Names of members are stable across versions.
  var json: JSONValue { get }

  /// Error that ended the work after a part of it was done. `nil` if all of it was done.
  var failure: RepositoryError? { get }
}

extension Answer {
  /// `nil`, because most commands do all of their work or none.
  package var failure: RepositoryError? { nil }
}

extension JSONValue {
  /// The value as one line of JSON with the names of members sorted.
  package var text: String { String(decoding: json, as: UTF8.self) }
}
