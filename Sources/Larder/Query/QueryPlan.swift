/// The plan of a query, which prints as one line.
///
/// ```
/// ordered(country, rating) [country =, rating >=], order from the index, 12 rows estimated, 12 examined
/// ```
///
/// Get a plan from ``LocalRepository/explain(_:)`` to see which index a query uses. A plan contains names of indexes and properties, and
/// never values.
public struct QueryPlan: Hashable, Sendable, CustomStringConvertible {
  /// The source from which a query reads its records.
  public enum Access: Hashable, Sendable {
    /// No source, because no record can meet the query.
    case nothing
    /// An index, named by the text of its declaration, which follows the word `automatic` for an index that no schema declares.
    case index(String)
    /// All records of the collection, each of which is tested.
    case scan
    /// No source, because the query is refused for the reason in ``QueryPlan/refusal``.
    case refused
  }

  /// The way in which the results get their order.
  public enum Order: Hashable, Sendable {
    /// The query has no order, so the results are sorted by id.
    case id
    /// The index yields the records in the query's order, so no sort is needed.
    case index
    /// The results are sorted in memory.
    case sorted
  }

  /// Source from which the query reads its records.
  public let access: Access
  /// Conditions that the index answers, each as the name of the property and the kind of condition.
  public let conditions: [String]
  /// Conditions that are tested for each record: the name of the property, or `predicate`, `filter`, `distance` or `box`.
  public let residual: [String]
  /// The way in which the results get their order.
  public let order: Order
  /// Estimated number of records that the query reads.
  public let estimatedRows: Int
  /// Number of records that the query has read, or `nil` if the query was not run because it may read over 10,000 records.
  public let examinedRows: Int?
  /// Reason why the query is refused, or `nil` if it can be answered.
  public let refusal: String?

  /// Name of the index from which the query reads, or `nil` without an index.
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
  /// Returns the plan as its public value, which has names but no values of records.
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

  /// Names of the conditions that are tested for each record, each listed once.
  private var checkedConditions: [String] {
    let residual = shape.conditions.indices.filter { !choice.covered.contains($0) }
    var names = residual.map { shape.conditions[$0].constraint.path?.propertyName ?? "predicate" }
    if shape.filterCount > 0 { names.append("filter") }
    var (areas, boxes) = (shape.areas[...], shape.boxes.count)
    // The access path answers one place or one box of the query, so only the remaining places and boxes are tested for each record.
    if case .near = choice.access { areas.removeLast() }
    if case .box = choice.access { boxes -= 1 }
    if areas.contains(where: { $0.radius != nil }) { names.append("distance") }
    if boxes > 0 { names.append("box") }
    // Two conditions may be on the same property, whose name is then listed once.
    var seen: Set<String> = []
    return names.filter { seen.insert($0).inserted }
  }

  /// Texts of the conditions that the access path answers, so that no record is tested for them.
  private var answeredConditions: [String] {
    switch choice.access {
    case .nothing, .scan: return []
    case .near: return ["nearest first"]
    case .box: return ["in a box"]
    case .words: return ["matching words"]
    case .ordered(let index, let spans, _):
      let columns = indexes.definitions[index].columns
      // All spans (ranges of the index) have the same columns and kinds of bounds, so the first span describes all of them.
      guard let span = spans.first else { return [] }
      var conditions = columns.prefix(span.prefix.count).map { "\($0.keyPath.propertyName) =" }
      if spans.count > 1, !conditions.isEmpty {
        conditions[conditions.count - 1] = "\(columns[conditions.count - 1].keyPath.propertyName) in \(spans.count)"
      }
      if span.lower != nil || span.upper != nil, columns.indices.contains(span.prefix.count) {
        // A range of floating-point numbers such as `> 5` has an infinity as its other bound, to exclude NaN. The text of the plan leaves
        // out a bound that is an infinity.
        let lower = span.lower.flatMap { $0.value == IndexValue(-Double.infinity) ? nil : $0.isInclusive ? " >=" : " >" }
        let upper = span.upper.flatMap { $0.value == IndexValue(Double.infinity) ? nil : $0.isInclusive ? " <=" : " <" }
        conditions.append(columns[span.prefix.count].keyPath.propertyName + (lower ?? "") + (upper ?? ""))
      }
      return conditions
    }
  }
}
