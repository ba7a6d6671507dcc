internal import Foundation
package import Larder

extension RecordQuery {
  /// Refuses fields that no record of a collection has: most of them are mistyped, and would give an empty answer without a word.
  ///
  /// Cost: reads records up to the first that has each field, all of them where one is missing.
  /// - Throws: `.unsupported` with the nearest field. Nothing is refused where no record is left that could have it.
  package func checkFields(in records: [StoredRecord], of collection: String) throws(RepositoryError) {
    var missing = paths.filter { !$0.isOwn }
    var seen: [JSONValue] = []
    for record in records where record.value != nil {
      guard !missing.isEmpty else { return }
      guard let value = record.json else { continue }
      missing.removeAll { $0.isPresent(in: value) == true }
      seen.append(value)
    }
    missing.removeAll { path in !seen.contains { path.isPresent(in: $0) == false } }
    guard !missing.isEmpty else { return }
    let found = missing.map { "\(TerminalText.escaped($0.text))\($0.suggestion(from: seen))" }.joined(separator: "; ")
    throw RepositoryError(
      .unsupported,
      "expected fields that records of \"\(collection)\" have, found one that none has: \(found); --missing-ok takes it for null")
  }

  /// The fields that the query names, each once.
  private var paths: [FieldPath] {
    var paths: [FieldPath] = []
    for path in conditions.flatMap(\.paths) + orders.map(\.path) + (fields ?? []) where !paths.contains(path) { paths.append(path) }
    return paths
  }
}

extension QueryExpression {
  /// The fields that are compared.
  fileprivate var paths: [FieldPath] {
    switch self {
    case .comparison(let path, _, _), .oneOf(let path, _): [path]
    case .and(let left, let right), .or(let left, let right): left.paths + right.paths
    case .not(let inner): inner.paths
    }
  }
}

extension FieldPath {
  /// Whether a value has the field; `nil` where that cannot be known, because something before it is null or an empty array.
  ///
  /// Of an array, any element may have the rest of the path, and any position is a field: lengths are data, and differ between records.
  fileprivate func isPresent(in value: JSONValue) -> Bool? { Self.isPresent(steps[...], in: value) }

  private static func isPresent(_ steps: ArraySlice<Step>, in value: JSONValue) -> Bool? {
    guard let step = steps.first else { return true }
    if value.isNull { return nil }
    switch step {
    case .member(let name): return value[name].map { isPresent(steps.dropFirst(), in: $0) } ?? false
    case .element:
      guard let elements = value.arrayValue else { return false }
      if steps.count == 1 { return true }
      let answers = elements.map { isPresent(steps.dropFirst(), in: $0) }
      return answers.contains(true) ? true : answers.contains(false) ? false : nil
    }
  }

  /// Returns the nearest field that values have, as a question in parentheses, or the fields that there are.
  fileprivate func suggestion(from values: [JSONValue]) -> String {
    guard
      let position = steps.indices.first(where: { index in
        !values.contains { Self.isPresent(steps[...index], in: $0) == true }
      })
    else { return "" }
    var names: Set<String> = []
    for value in values where names.count < Self.nameLimit { Self.collectNames(at: steps[..<position], in: value, &names) }
    guard case .member(let name) = steps[position] else { return " (it is no array)" }
    if let nearest = NearestName.nearest(to: name, among: names.sorted()) {
      let path = FieldPath(steps: steps[..<position] + [.member(nearest)] + steps[(position + 1)...])
      return " (did you mean \(TerminalText.escaped(path.text))?)"
    }
    let shown = names.sorted().prefix(8).map { TerminalText.escaped($0) }.joined(separator: ", ")
    return shown.isEmpty ? "" : " (there are \(shown)\(names.count > 8 ? ", …" : ""))"
  }

  /// The most names that are looked through for the nearest one: a value may have a member for each key of a dictionary.
  private static let nameLimit = 10_000

  private static func collectNames(at steps: ArraySlice<Step>, in value: JSONValue, _ names: inout Set<String>) {
    guard let step = steps.first else { return names.formUnion(value.objectValue?.names.prefix(nameLimit) ?? []) }
    switch step {
    case .member(let name): if let next = value[name] { collectNames(at: steps.dropFirst(), in: next, &names) }
    case .element: for element in value.arrayValue ?? [] { collectNames(at: steps.dropFirst(), in: element, &names) }
    }
  }
}
