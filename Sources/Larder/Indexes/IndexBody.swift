/// The content of an index, as far as there is any.
enum IndexBody: Sendable {
  /// No query has needed the index yet.
  case absent
  /// The index is being built from an earlier state; what has changed since is applied to it at the end.
  case building([(old: RecordSlot?, new: RecordSlot?)])
  case ordered(PersistentTree<IndexEntry>)
  case geo(GeoIndex)
  case text(TextIndex)

  /// Whether queries can use the index.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .ordered, .geo, .text: true
    }
  }
}
