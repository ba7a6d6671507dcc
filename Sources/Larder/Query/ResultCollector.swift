/// Keeps the first results of a query while candidates come in, in their order or in any.
struct ResultCollector<Item: Sendable> {
  private let order: ResultOrder<Item>
  /// How many results decide the answer; `nil` for all.
  private let needed: Int?
  /// Whether candidates come in the query's order, so that the first ones are the answer.
  private let arrivesInOrder: Bool
  private var kept: [QueryCandidate<Item>] = []
  /// The last of the first `needed`, once there were so many: what does not come before it is out.
  private var bar: QueryCandidate<Item>?

  init(order: ResultOrder<Item>, needed: Int?, arrivesInOrder: Bool) {
    self.order = order
    self.needed = needed
    self.arrivesInOrder = arrivesInOrder
  }

  /// Takes a candidate; `false` when no further one can matter.
  mutating func add(_ candidate: QueryCandidate<Item>) -> Bool {
    guard let needed else {
      kept.append(candidate)
      return true
    }
    guard needed > 0 else { return false }
    if let bar, !order.isBefore(candidate, bar) { return true }
    kept.append(candidate)
    if arrivesInOrder { return kept.count < needed }
    // Cut back only when twice too many are kept, so that each one is sorted a constant number of times.
    if kept.count / 2 > max(needed, 32) { cut(to: needed) }
    return true
  }

  /// The results in order, without the first so many.
  consuming func finish(skipping skipped: Int) -> [QueryCandidate<Item>] {
    if !arrivesInOrder { cut(to: needed ?? kept.count) }
    return skipped == 0 ? kept : Array(kept.dropFirst(skipped))
  }

  private mutating func cut(to count: Int) {
    kept.sort(by: order.isBefore)
    guard kept.count >= count else { return }
    kept.removeLast(kept.count - count)
    bar = kept.last
  }
}
