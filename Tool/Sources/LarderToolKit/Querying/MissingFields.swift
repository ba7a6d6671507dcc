internal import Foundation
package import Larder

extension RecordQuery {
  /// Checks that each field of the query exists in at least one record.
  ///
  /// A mistyped field would give an empty result with exit code 0.
  ///
  /// Cost: parses records until each field was found, and all records if one is missing.
  /// - Throws: `.unsupported` with the most similar field. A field is accepted if no record can disprove it, as below null or in an empty
  ///   array.
  package func checkFields(in records: [StoredRecord], of collection: String) throws(RepositoryError) {
    var missing = paths.filter { !$0.isOwn }
    var seen: [JSONValue] = []
    for record in records where record.value != nil {
      // Usually all fields are in the first record, and the rest is not parsed a second time.
      guard !missing.isEmpty else { return }
      guard let value = record.json else { continue }
      missing.removeAll { $0.isPresent(in: value) == true }
      seen.append(value)
    }
    // A field is wrong only if a record lacks it for certain. In an empty collection no field is.
    missing.removeAll { path in !seen.contains { path.isPresent(in: $0) == false } }
    guard !missing.isEmpty else { return }
    let found = missing.map { "\(TerminalText.escaped($0.text))\($0.suggestion(from: seen))" }.joined(separator: "; ")
    throw RepositoryError(
      .unsupported,
      "expected fields that records of \"\(collection)\" have, found one that none has: \(found); --missing-ok takes it for null")
  }

  /// Fields that the conditions, sort orders and selection name, without duplicates.
  private var paths: [FieldPath] {
    var seen: Set<FieldPath> = []
    return (conditions.flatMap(\.paths) + orders.map(\.path) + (fields ?? [])).filter { seen.insert($0).inserted }
  }
}

extension QueryExpression {
  /// Fields that the condition compares.
  fileprivate var paths: [FieldPath] {
    switch self {
    case .comparison(let path, _, _), .oneOf(let path, _): [path]
    case .and(let terms), .or(let terms): terms.flatMap(\.paths)
    case .not(let inner): inner.paths
    }
  }
}

extension FieldPath {
  /// Returns whether a value has the field, or `nil` if a null or an empty array on the path leaves that open.
  ///
  /// In an array, one element with the rest of the path is enough. Every position counts as a field, because lengths differ between
  /// records.
  fileprivate func isPresent(in value: JSONValue) -> Bool? { Self.isPresent(steps[...], in: value) }

  private static func isPresent(_ steps: ArraySlice<Step>, in value: JSONValue) -> Bool? {
    guard let step = steps.first else { return true }
    if value.isNull { return nil }
    switch step {
    case .member(let name): return value[name].map { isPresent(steps.dropFirst(), in: $0) } ?? false
    case .element:
      guard let elements = value.arrayValue else { return false }
      if steps.count == 1 { return true }
      // An empty array gives no answer. Its elements could have the field, so the result is `nil`.
      let answers = elements.map { isPresent(steps.dropFirst(), in: $0) }
      return answers.contains(true) ? true : answers.contains(false) ? false : nil
    }
  }

  /// Returns the most similar field of the values as a question in parentheses, or else the fields that exist.
  fileprivate func suggestion(from values: [JSONValue]) -> String {
    guard
      let position = steps.indices.first(where: { index in
        !values.contains { Self.isPresent(steps[...index], in: $0) == true }
      })
    else { return "" }
    var names: Set<String> = []
    for value in values where names.count < Self.nameLimit { Self.collectNames(at: steps[..<position], in: value, &names) }
    guard case .member(let name) = steps[position] else { return " (it is no array)" }
    // Sorted, because the first of several equally similar names is suggested, and a set has no order.
    if let nearest = NearestName.nearest(to: name, among: names.sorted()) {
      let path = FieldPath(steps: steps[..<position] + [.member(nearest)] + steps[(position + 1)...])
      return " (did you mean \(TerminalText.escaped(path.text))?)"
    }
    let shown = names.sorted().prefix(8).map { TerminalText.escaped($0) }.joined(separator: ", ")
    return shown.isEmpty ? "" : " (there are \(shown)\(names.count > 8 ? ", …" : ""))"
  }

  /// Maximum number of names to search for a similar one.
  ///
  /// A dictionary in a value has a name for each of its keys.
  private static let nameLimit = 10_000

  private static func collectNames(at steps: ArraySlice<Step>, in value: JSONValue, _ names: inout Set<String>) {
    guard let step = steps.first else { return names.formUnion(value.objectValue?.names.prefix(nameLimit) ?? []) }
    switch step {
    case .member(let name): if let next = value[name] { collectNames(at: steps.dropFirst(), in: next, &names) }
    case .element: for element in value.arrayValue ?? [] { collectNames(at: steps.dropFirst(), in: element, &names) }
    }
  }
}
