/// The plan of a query, which prints as one line.
///
/// ```
/// ordered(country, rating) [country =, rating >=], order from the index, 12 rows estimated, 12 examined
/// ```
///
/// Get it from ``LocalRepository/explain(_:)`` to see which index a query uses. It names indexes and properties, never values.
public struct QueryPlan: Hashable, Sendable, CustomStringConvertible {
  /// The source of the records.
  public enum Access: Hashable, Sendable {
    /// No source, because no record can meet the query.
    case nothing
    /// An index, named by the text of its declaration.
    case index(String)
    /// All records, each of which is tested.
    case scan
    /// None, because the query is refused. ``QueryPlan/refusal`` has the reason.
    case refused
  }

  /// The source of the order of the results.
  public enum Order: Hashable, Sendable {
    /// The query has no order, so the id decides.
    case id
    /// The index yields the records in the query's order.
    case index
    /// The results are sorted in memory.
    case sorted
  }

  /// Source of the records.
  public let access: Access
  /// Conditions that the index answers, each with the property and its use.
  public let conditions: [String]
  /// Conditions that are tested record by record: the property of a condition, or `predicate`, `filter`, `distance`, `box`.
  public let residual: [String]
  /// Source of the order of the results.
  public let order: Order
  /// Estimated number of records that the query reads.
  public let estimatedRows: Int
  /// Number of records that the query did read, or `nil` if it was not run because there were too many.
  public let examinedRows: Int?
  /// Reason why the query cannot be answered, or `nil` if it can.
  public let refusal: String?

  /// Name of the index that is used, or `nil` if none is.
  public var index: String? { if case .index(let name) = access { name } else { nil } }

  /// Plan of the query as one line of text.
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
  /// Returns the plan as the public value, in names without values of records.
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

  /// Conditions that are tested record by record, each named once.
  private var checkedConditions: [String] {
    let residual = shape.conditions.indices.filter { !choice.covered.contains($0) }
    var names = residual.map { shape.conditions[$0].constraint.path?.propertyName ?? "predicate" }
    if shape.filterCount > 0 { names.append("filter") }
    var (areas, boxes) = (shape.areas[...], shape.boxes.count)
    // The access path answers one place or box of the query, so only the others are tested.
    if case .near = choice.access { areas.removeLast() }
    if case .box = choice.access { boxes -= 1 }
    if areas.contains(where: { $0.radius != nil }) { names.append("distance") }
    if boxes > 0 { names.append("box") }
    // Several conditions may be on one property.
    var seen: Set<String> = []
    return names.filter { seen.insert($0).inserted }
  }

  /// Conditions that the access path answers.
  private var answeredConditions: [String] {
    switch choice.access {
    case .nothing, .scan: return []
    case .near: return ["nearest first"]
    case .box: return ["in a box"]
    case .words: return ["matching words"]
    case .ordered(let index, let spans, _):
      let columns = indexes.definitions[index].columns
      // All spans bind the same columns, so the first one stands for all.
      guard let span = spans.first else { return [] }
      var conditions = columns.prefix(span.prefix.count).map { "\($0.keyPath.propertyName) =" }
      if spans.count > 1, !conditions.isEmpty {
        conditions[conditions.count - 1] = "\(columns[conditions.count - 1].keyPath.propertyName) in \(spans.count)"
      }
      if span.lower != nil || span.upper != nil, columns.indices.contains(span.prefix.count) {
        // Ranges of floating-point numbers are bounded by the infinities to leave out NaN, so an infinity is no bound of the query.
        let lower = span.lower.flatMap { $0.value == IndexValue(-Double.infinity) ? nil : $0.isInclusive ? " >=" : " >" }
        let upper = span.upper.flatMap { $0.value == IndexValue(Double.infinity) ? nil : $0.isInclusive ? " <=" : " <" }
        conditions.append(columns[span.prefix.count].keyPath.propertyName + (lower ?? "") + (upper ?? ""))
      }
      return conditions
    }
  }
}
