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
