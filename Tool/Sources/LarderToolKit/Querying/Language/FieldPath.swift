// Language/ is the language of conditions: fields, values, comparisons, and how their text is read.
// Invariant: a text that is not understood is refused with the place of the mistake. Called by RecordQuery.

package import Larder

/// The path of a field in a record's value, or one of the record's own fields.
package struct FieldPath: Hashable, Sendable {
  /// A step: the member of an object, or the element of an array.
  package enum Step: Hashable, Sendable {
    /// A member by its name.
    case member(String)
    /// An element by its position.
    case element(Int)
  }

  /// The steps from the value on.
  let steps: [Step]

  /// The record's own fields, which begin with a dollar sign so that no field of a value is hidden by them.
  private static let own: [String: @Sendable (StoredRecord) -> JSONValue] = [
    "$key": { JSONValue($0.key.text) }, "$revision": { JSONValue($0.revision.number) }, "$version": { JSONValue($0.schemaVersion) },
  ]

  init(steps: [Step]) { self.steps = steps }

  /// Whether it is one of the record's own fields.
  var isOwn: Bool {
    guard case .member(let name) = steps.first, steps.count == 1 else { return false }
    return Self.own[name] != nil
  }

  /// Whether it begins with a dollar sign and is no field that a record has.
  var isUnknown: Bool {
    guard case .member(let name) = steps.first, name.hasPrefix("$") else { return false }
    return Self.own[name] == nil || steps.count > 1
  }

  /// The names of the record's own fields, for errors.
  static let ownNames = "$key, $revision and $version"

  /// The path as it is written.
  package var text: String {
    steps.enumerated().map { index, step in
      switch step {
      case .member(let name): (index > 0 ? "." : "") + name
      case .element(let position): "[\(position)]"
      }
    }.joined()
  }

  /// Returns what stands at the path; `nil` where there is nothing.
  package func value(in value: JSONValue, of record: StoredRecord) -> JSONValue? {
    if case .member(let name) = steps.first, steps.count == 1, let field = Self.own[name] { return field(record) }
    return steps.reduce(Optional(value)) { value, step in
      switch step {
      case .member(let name): value?[name]
      case .element(let position): value?[position]
      }
    }
  }
}
