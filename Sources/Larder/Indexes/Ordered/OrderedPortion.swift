/// Entries of an ordered index, sorted, to be merged with others; portions can be made in parallel.
///
/// The digests of entries are sorted and merged: they are small and compare as numbers. Two entries are compared only where their digests
/// are equal.
struct OrderedPortion: Sendable {
  private struct Place: Sendable {
    let digest: IndexDigest
    var position: Int
  }

  private var entries: [IndexEntry]
  private var places: [Place]

  /// Sorts entries, whose keys are all different.
  init(_ entries: [IndexEntry]) {
    self.entries = entries
    places = entries.enumerated().map { Place(digest: IndexEntry.digest($0.element), position: $0.offset) }
    places.sort { Self.isBefore($0, $1, entries) }
  }

  /// Returns the entries of all portions in order.
  static func joined(_ portions: [OrderedPortion]) -> [IndexEntry] {
    let entries = portions.count == 1 ? portions[0].entries : portions.flatMap(\.entries)
    var runs: [[Place]] = []
    var start = 0
    for portion in portions {
      runs.append(portion.places.map { Place(digest: $0.digest, position: $0.position + start) })
      start += portion.entries.count
    }
    while runs.count > 1 {
      runs = stride(from: 0, to: runs.count, by: 2).map { index in
        index + 1 < runs.count ? runs[index].merged(with: runs[index + 1]) { isBefore($0, $1, entries) } : runs[index]
      }
    }
    return runs.first?.map { entries[$0.position] } ?? []
  }

  @inline(__always)
  private static func isBefore(_ left: Place, _ right: Place, _ entries: [IndexEntry]) -> Bool {
    if left.digest != right.digest { return left.digest < right.digest }
    return entries[left.position] < entries[right.position]
  }
}
