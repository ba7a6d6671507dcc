/// The contents that a store should have: dictionaries, and the log of the commits since a state that no crash can take back.
struct Model: Sendable {
  struct State: Equatable, Sendable {
    var places: [Int: Place] = [:]
    var notes: [Int: Note] = [:]
  }

  /// One commit, acknowledged or perhaps made.
  struct Commit: Sendable {
    var places: [(id: Int, value: Place?)] = []
    var notes: [(id: Int, value: Note?)] = []
  }

  private(set) var state = State()
  /// The commits in which the places that are there were written.
  private(set) var revisions: [Int: UInt64] = [:]
  private(set) var revision: UInt64 = 0
  /// The newest commit that survives power loss.
  var durable: UInt64 = 0
  /// The version of the notes' schema, and the notes that are stored as it has them.
  private(set) var version = 1
  private(set) var current: Set<Int> = []
  private var base = (state: State(), revisions: [Int: UInt64](), current: Set<Int>(), revision: UInt64(0))
  private var log: [Commit] = []

  var oldest: UInt64 { base.revision }
  var places: [Int: Place] { state.places }
  var notes: [Int: Note] { state.notes }

  /// Whether places to be written would be equal to others where one index allows only one.
  func clashes(_ written: [Place], replacing isEverythingReplaced: Bool = false) -> Bool {
    var final = isEverythingReplaced ? [:] : state.places
    for place in written { final[place.id] = place }
    return written.contains { place in final[place.id] == place && final.values.contains { $0.slug == place.slug && $0.id != place.id } }
  }

  /// Notes a commit that was acknowledged.
  mutating func commit(_ commit: Commit, isDurable: Bool) {
    revision += 1
    Self.apply(commit, to: &state)
    for (id, value) in commit.places { revisions[id] = value == nil ? nil : revision }
    Self.apply(commit, toCurrent: &current)
    log.append(commit)
    if isDurable { durable = revision }
  }

  /// Returns the state at a commit, or `nil` for one that the log does not reach.
  ///
  /// - Parameter last: A commit that was perhaps made after those of the log.
  func state(at revision: UInt64, perhaps last: Commit? = nil) -> State? {
    guard var commits = commits(upTo: revision, last) else { return nil }
    var state = base.state
    while let commit = commits.popFirst() { Self.apply(commit, to: &state) }
    return state
  }

  private func commits(upTo revision: UInt64, _ last: Commit?) -> ArraySlice<Commit>? {
    let commits = log + (last.map { [$0] } ?? [])
    guard revision >= base.revision, revision - base.revision <= commits.count else { return nil }
    return commits.prefix(Int(revision - base.revision))
  }

  /// Begins a new log with the state at a commit, which no crash can take back any more.
  mutating func begin(at newest: UInt64, perhaps last: Commit? = nil) {
    // A crash that takes back the newest commit of a note may leave it stored in an older version.
    var (state, revisions, current) = (base.state, base.revisions, base.current)
    for (offset, commit) in (commits(upTo: newest, last) ?? []).enumerated() {
      Self.apply(commit, to: &state)
      Self.apply(commit, toCurrent: &current)
      for (id, value) in commit.places { revisions[id] = value == nil ? nil : base.revision + UInt64(offset) + 1 }
    }
    (self.state, self.revisions, self.current, revision, durable) = (state, revisions, current, newest, newest)
    base = (state, revisions, current, newest)
    log = []
  }

  /// Brings the notes to a newer version, at the beginning of a log.
  mutating func migrate(to new: Int) {
    begin(at: revision)
    state.notes = state.notes.mapValues { $0.migrated(from: version, to: new) }
    base.state = state
    version = new
    (current, base.current) = ([], [])
  }

  /// Notes that every note was rewritten, in commits up to one.
  mutating func noteRewrite(at newest: UInt64) {
    begin(at: revision)
    (revision, durable, base.revision) = (newest, newest, newest)
    current = Set(state.notes.keys)
    base.current = current
  }

  private static func apply(_ commit: Commit, to state: inout State) {
    for (id, value) in commit.places { state.places[id] = value }
    for (id, value) in commit.notes { state.notes[id] = value }
  }

  private static func apply(_ commit: Commit, toCurrent current: inout Set<Int>) {
    for (id, value) in commit.notes {
      if value == nil { current.remove(id) } else { current.insert(id) }
    }
  }
}
