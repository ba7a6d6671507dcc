/// The plan of a query, as a value that prints as one line.
///
/// ```
/// ordered(country, rating) [country =, rating >=], order from the index, 12 rows estimated, 12 examined
/// ```
///
/// It names indexes and properties, never values.
public struct QueryPlan: Hashable, Sendable, CustomStringConvertible {
  /// The source of the records.
  public enum Access: Hashable, Sendable {
    /// Nowhere: no record can meet the query.
    case nothing
    /// From an index, named as its declaration prints.
    case index(String)
    /// From looking at all records.
    case scan
    /// The query cannot be answered; ``QueryPlan/refusal`` says why.
    case refused
  }

  /// The source of the order of the results.
  public enum Order: Hashable, Sendable {
    /// Nothing was asked, and the id decides.
    case id
    /// The index gives the records in order.
    case index
    /// The results are sorted in memory.
    case sorted
  }

  /// The source of the records.
  public let access: Access
  /// The conditions that the index answers: each names a property, and how it is used.
  public let conditions: [String]
  /// The conditions that are checked record by record: the property of a condition, or `predicate`, `filter`, `distance`, `box`.
  public let residual: [String]
  /// The source of the order.
  public let order: Order
  /// The number of records that the plan expects to look at.
  public let estimatedRows: Int
  /// The number of records that it did look at; `nil` when there were too many to try.
  public let examinedRows: Int?
  /// The reason for which the query cannot be answered, if it cannot.
  public let refusal: String?

  /// The name of the index that is used, or `nil` when none is.
  public var index: String? { if case .index(let name) = access { name } else { nil } }

  /// The plan on one line.
  public var description: String {
    if let refusal { return "refused: \(refusal)" }
    var parts: [String]
    switch access {
    case .nothing, .refused: parts = ["no record can match"]
    case .scan: parts = ["scan of all records"]
    case .index(let name): parts = [conditions.isEmpty ? name : "\(name) [\(conditions.joined(separator: ", "))]"]
    }
    if !residual.isEmpty { parts.append("checking \(residual.joined(separator: ", "))") }
    switch order {
    case .id: parts.append("by id")
    case .index: parts.append("order from the index")
    case .sorted: parts.append("sorted in memory")
    }
    parts.append("\(estimatedRows) rows estimated")
    parts.append(examinedRows.map { "\($0) examined" } ?? "not run")
    return parts.joined(separator: ", ")
  }
}

extension QueryPlan {
  init(refusal error: RepositoryError) {
    self.init(
      access: .refused, conditions: [], residual: [], order: .id, estimatedRows: 0, examinedRows: 0, refusal: error.message)
  }
}

extension QueryRun {
  /// Returns the plan as it is shown to an app, in words without values.
  func plan(examined: Int?) -> QueryPlan {
    QueryPlan(
      access: planAccess, conditions: answeredConditions, residual: checkedConditions,
      order: shape.order.isEmpty && shape.near == nil && shape.words == nil ? .id : (choice.givesOrder ? .index : .sorted),
      estimatedRows: choice.estimate, examinedRows: examined, refusal: nil)
  }

  private var planAccess: QueryPlan.Access {
    switch choice.access {
    case .nothing: .nothing
    case .scan: .scan
    case .ordered(let index, _, _), .near(let index), .box(let index, _), .words(let index): .index(indexes.definitions[index].name)
    }
  }

  /// The conditions that are checked record by record, each named once.
  private var checkedConditions: [String] {
    let residual = shape.conditions.indices.filter { !choice.covered.contains($0) }
    var names = residual.map { shape.conditions[$0].constraint.path?.propertyName ?? "predicate" }
    if shape.filterCount > 0 { names.append("filter") }
    var (areas, boxes) = (shape.areas[...], shape.boxes.count)
    if case .near = choice.access { areas.removeLast() }
    if case .box = choice.access { boxes -= 1 }
    if areas.contains(where: { $0.radius != nil }) { names.append("distance") }
    if boxes > 0 { names.append("box") }
    var seen: Set<String> = []
    return names.filter { seen.insert($0).inserted }
  }

  /// The conditions that the access path answers.
  private var answeredConditions: [String] {
    switch choice.access {
    case .nothing, .scan: return []
    case .near: return ["nearest first"]
    case .box: return ["in a box"]
    case .words: return ["matching words"]
    case .ordered(let index, let spans, _):
      let columns = indexes.definitions[index].columns
      guard let span = spans.first else { return [] }
      var conditions = columns.prefix(span.prefix.count).map { "\($0.keyPath.propertyName) =" }
      if spans.count > 1, !conditions.isEmpty {
        conditions[conditions.count - 1] = "\(columns[conditions.count - 1].keyPath.propertyName) in \(spans.count)"
      }
      if span.lower != nil || span.upper != nil, columns.indices.contains(span.prefix.count) {
        // The infinities only stand for "a number".
        let lower = span.lower.flatMap { $0.value == IndexValue(-Double.infinity) ? nil : $0.isInclusive ? " >=" : " >" }
        let upper = span.upper.flatMap { $0.value == IndexValue(Double.infinity) ? nil : $0.isInclusive ? " <=" : " <" }
        conditions.append(columns[span.prefix.count].keyPath.propertyName + (lower ?? "") + (upper ?? ""))
      }
      return conditions
    }
  }
}
