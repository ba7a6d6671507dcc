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
