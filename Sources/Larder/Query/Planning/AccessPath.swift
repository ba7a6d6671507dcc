internal import Foundation

// Planning/ chooses the index that answers a query. Invariant: a plan is right for every state of the collection; the counts of the
// indexes decide only its cost. Called by QueryRun.

/// The way by which a plan comes by its candidates.
enum AccessPath: Sendable {
  /// No record can meet the query.
  case nothing
  /// All records, in the order of their keys' bytes.
  case scan
  /// Parts of an ordered index.
  case ordered(index: Int, spans: [IndexSpan], IndexOrderUse)
  /// Nearest first.
  case near(index: Int)
  /// In one of the query's boxes.
  case box(index: Int, BoundingBox)
  /// Best match first.
  case words(index: Int)
}

/// A part of an ordered index: entries that begin with some values, and whose next column lies between bounds.
struct IndexSpan: Sendable {
  var prefix: [IndexValue]
  var lower: Bound?
  var upper: Bound?

  /// Returns the ranks of the entries in an index, whose columns descend or not.
  func ranks(in tree: PersistentTree<IndexEntry>, isDescending: Bool) -> Range<Int> {
    let (first, last) = isDescending ? (upper, lower) : (lower, upper)
    let (low, high) = (prefix + (first.map { [$0.value] } ?? []), prefix + (last.map { [$0.value] } ?? []))
    let start = first?.isInclusive ?? true ? tree.start(of: low) : tree.end(of: low)
    let end = last?.isInclusive ?? true ? tree.end(of: high) : tree.start(of: high)
    return start..<max(start, end)
  }
}
