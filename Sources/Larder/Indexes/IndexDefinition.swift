/// An index, or what there is of it.
enum IndexBody: Sendable {
  /// No query has needed it yet.
  case absent
  /// It is being made from an earlier state; what changed since will be applied to it.
  case building([(old: RecordSlot?, new: RecordSlot?)])
  case ordered(CountedTree<IndexEntry>)
  case geo(GeoIndex)
  case text(TextIndex)

  /// Whether it can be used.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .ordered, .geo, .text: true
    }
  }
}

/// What a plan must know of a declared index: a ``RepositoryIndex`` without its closures.
struct IndexShape: Sendable {
  enum Kind: Sendable {
    case ordered, geo, fullText
  }

  struct Column: Sendable {
    let keyPath: ItemPath
    let isDescending: Bool
    /// See ``IndexColumn``.
    let rawValues: RawIndexValues?
  }

  let kind: Kind
  let columns: [Column]

  init<Item>(_ declaration: RepositoryIndex<Item>) {
    kind =
      switch declaration.kind {
      case .ordered: .ordered
      case .geo: .geo
      case .fullText: .fullText
      }
    columns = declaration.columns.map { Column(keyPath: $0.keyPath, isDescending: $0.isDescending, rawValues: $0.rawValues) }
  }
}

/// The indexes of a collection at one commit, as plans and walks need them: of one type whatever the type of the records is.
struct IndexTable: Sendable {
  let shapes: [IndexShape]
  let bodies: [IndexBody]
  /// The order of the ids.
  let keys: KeyOrder

  func tree(_ index: Int) -> CountedTree<IndexEntry>? {
    if case .ordered(let tree) = bodies[index] { tree } else { nil }
  }
}
