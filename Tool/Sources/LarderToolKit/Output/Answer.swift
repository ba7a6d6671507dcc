@_spi(Inspection) package import Larder

/// The answer of a command, in both forms.
package protocol Answer: Sendable {
  /// Returns the lines for people.
  /// - Parameter width: The columns of the terminal; `nil` where there is none, and then nothing is cut.
  func lines(width: Int?) -> [String]

  /// The JSON for programs; its names do not change.
  var json: JSONValue { get }

  /// The failure that ended the work after a part of it was done; `nil` where all is done.
  var failure: RepositoryError? { get }
}

extension Answer {
  /// None: most work is done as a whole or not at all.
  package var failure: RepositoryError? { nil }
}

extension JSONValue {
  /// The value as one line of JSON, names sorted.
  package var text: String { String(decoding: json, as: UTF8.self) }
}
