package import Larder

/// Output of the command `diff` for one record that differs.
package struct DifferenceAnswer: Answer {
  private let difference: RecordDifference
  private let hasValues: Bool

  /// Creates the output.
  /// - Parameter hasValues: Whether the old and the new value of each field are included.
  package init(_ difference: RecordDifference, hasValues: Bool) { (self.difference, self.hasValues) = (difference, hasValues) }

  private var mark: String {
    switch difference.kind {
    case .added: "+"
    case .removed: "-"
    case .changed: "~"
    }
  }

  /// Returns one line with `+`, `-` or `~`, the collection and the key.
  ///
  /// For a change, the names of its fields follow.
  package func lines(width: Int?) -> [String] {
    let address = "\(difference.address.collection) \(TerminalText.escaped(difference.address.key.text))"
    guard difference.kind == .changed else {
      let value = hasValues ? difference.old ?? difference.new : nil
      return ["\(mark) \(address)\(value.map { ": " + TerminalText.escaped($0.text) } ?? "")"]
    }
    // `fields` is empty in two cases: equal values, and values without fields to compare. They need different lines.
    if difference.isOnlyRevision { return ["\(mark) \(address): revision or version"] }
    if difference.fields.isEmpty { return ["\(mark) \(address): bytes that are not JSON"] }
    guard hasValues else { return ["\(mark) \(address): \(TerminalText.escaped(difference.fields.map(name).joined(separator: ", ")))"] }
    return ["\(mark) \(address)"]
      + difference.fields.map { field in
        TerminalText.escaped("    \(name(field)): \(text(field, difference.old)) → \(text(field, difference.new))")
      }
  }

  // A path without steps is the whole value, for example when a number replaced an object.
  private func name(_ field: FieldPath) -> String { field.steps.isEmpty ? "value" : field.text }
  private func value(_ field: FieldPath, _ value: JSONValue?) -> JSONValue? {
    field.steps.reduce(value) { value, step in if case .member(let name) = step { value?[name] } else { nil } }
  }
  private func text(_ field: FieldPath, _ value: JSONValue?) -> String { self.value(field, value)?.text ?? "nothing" }

  /// JSON object with `difference`, `collection` and `key`.
  ///
  /// A change also has `fields`. With values, it has `old` and `new`.
  package var json: JSONValue {
    var body = JSONObject()
    body["difference"] = JSONValue(difference.kind.rawValue)
    body["collection"] = JSONValue(difference.address.collection)
    body["key"] = JSONValue(difference.address.key.text)
    if difference.kind == .changed { body["fields"] = .array(difference.fields.map { JSONValue(name($0)) }) }
    if difference.isOnlyRevision { body["onlyRevision"] = true }
    if hasValues {
      body["old"] = difference.old
      body["new"] = difference.new
    }
    return .object(body)
  }
}
