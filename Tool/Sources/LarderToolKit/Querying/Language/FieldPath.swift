// Language/ parses and evaluates the conditions, sort orders and field lists of `query`.
// Invariant: a text that cannot be parsed is refused with the position of the mistake. Called by RecordQuery.

package import Larder

/// Path of a field in a record's value, or one of `$key`, `$revision` and `$version` of the record itself.
package struct FieldPath: Hashable, Sendable {
  /// Step of a path: the member of an object, or the element of an array.
  package enum Step: Hashable, Sendable {
    /// Member of an object, by name.
    case member(String)
    /// Element of an array, by position.
    case element(Int)
  }

  /// Steps from the value to the field.
  let steps: [Step]

  /// Fields of the record itself.
  ///
  /// Their names begin with a dollar sign, so that they hide no member of a value.
  private static let own: [String: @Sendable (StoredRecord) -> JSONValue] = [
    "$key": { JSONValue($0.key.text) }, "$revision": { JSONValue($0.revision.number) }, "$version": { JSONValue($0.schemaVersion) },
  ]

  init(steps: [Step]) { self.steps = steps }

  /// True for `$key`, `$revision` and `$version`.
  var isOwn: Bool {
    guard case .member(let name) = steps.first, steps.count == 1 else { return false }
    return Self.own[name] != nil
  }

  /// True for a path that begins with a dollar sign and is not a field of the record.
  var isUnknown: Bool {
    guard case .member(let name) = steps.first, name.hasPrefix("$") else { return false }
    // The record's fields are texts and numbers. A path such as `$key.name` leads nowhere.
    return Self.own[name] == nil || steps.count > 1
  }

  /// Names of the record's own fields, for errors.
  static let ownNames = "$key, $revision and $version"

  /// The path as text, such as `address.city` or `tags[0]`.
  package var text: String {
    steps.enumerated().map { index, step in
      switch step {
      case .member(let name): (index > 0 ? "." : "") + name
      case .element(let position): "[\(position)]"
      }
    }.joined()
  }

  /// Returns the value at the path, or `nil` if the record has none there.
  package func value(in value: JSONValue, of record: StoredRecord) -> JSONValue? {
    // The record's own fields come first, so that a member named `$key` cannot hide the key.
    if case .member(let name) = steps.first, steps.count == 1, let field = Self.own[name] { return field(record) }
    return steps.reduce(Optional(value)) { value, step in
      switch step {
      case .member(let name): value?[name]
      case .element(let position): value?[position]
      }
    }
  }
}
