internal import Larder

/// The readers of a store's changes, with what they have been told.
struct Watcher {
  static let query = Query<Place>().where(\.value, .greaterOrEqual, 30).sorted(by: \.value).limit(6)

  var changes: RepositoryChanges<Place>.AsyncIterator
  var told: [Int: Place]
  var results: QueryResults<Place>.AsyncIterator
  var shown: [Place]?

  init(_ opened: OpenStore, told: [Int: Place]) {
    changes = opened.places.changes().makeAsyncIterator()
    self.told = told
    results = opened.places.results(of: Self.query).makeAsyncIterator()
  }

  /// The results that the live query should show.
  static func expected(in places: [Int: Place]) -> [Place] {
    Array(places.values.filter { $0.value >= 30 }.sorted { ($0.value, $0.id) < ($1.value, $1.id) }.prefix(6))
  }

  /// Applies a change set to what was told before.
  mutating func apply(_ set: ChangeSet<Place>, mistake: Mistake?) throws {
    for change in set.changes {
      guard let id = change.id else { throw Difference("a change has no id: \(change.kind)") }
      if mistake == .losesChanges, change.revision.number.isMultiple(of: 8) { continue }
      switch change.kind {
      case .inserted: try expect(told[id] == nil, "place \(id) was told to be inserted, and was there")
      case .updated, .deleted:
        try expect(told[id] != nil, "place \(id) was told to be \(change.kind), and was not there")
        try expect(change.old == told[id], "place \(id) was \(String(describing: change.old)), told before \(String(describing: told[id]))")
      case .upserted: break
      }
      told[id] = change.kind == .deleted ? nil : change.new
    }
  }

  func compare(_ places: [Int: Place]) throws {
    let ids = Set(told.keys).union(places.keys).filter { told[$0] != places[$0] }.sorted()
    try expect(ids.isEmpty, "a reader of changes was told something else of \(ids)")
  }
}
