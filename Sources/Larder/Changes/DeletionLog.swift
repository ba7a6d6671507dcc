internal import DequeModule

/// A log of a store's newest deletions, from which a reader that resumes gets the keys that were deleted meanwhile.
///
/// Invariant: the log holds every deletion after ``horizon``. The deletion of a record that was saved again stays in it until it is the
/// oldest, so a reader of the log also looks into the records of the same commit.
struct DeletionLog: Sendable {
  struct Deletion: Sendable {
    let collection: Int
    let key: RecordKey
    let revision: Revision
  }

  private let limit: Int
  private var deletions: Deque<Deletion>
  /// Revision up to which deletions may have been forgotten.
  private(set) var horizon: Revision

  /// Makes a log of the deletions that were found at opening.
  init(_ deletions: [Deletion] = [], horizon: Revision = .zero, limit: Int) {
    self.limit = limit
    self.horizon = horizon
    self.deletions = []
    append(deletions)
  }

  /// Adds deletions that are newer than all in the log, and forgets the oldest beyond the limit.
  mutating func append(_ newer: [Deletion]) {
    deletions += newer.sorted { $0.revision < $1.revision }
    // The horizon moves along, so that a reader from before starts anew instead of missing a deletion.
    while deletions.count > limit, let oldest = deletions.popFirst() { horizon = max(horizon, oldest.revision) }
  }

  /// Forgets all deletions, which are those up to a commit.
  mutating func forget(upTo commit: Revision) {
    deletions.removeAll()
    horizon = max(horizon, commit)
  }

  /// Returns the last deletion of each key of a collection after one commit, up to and including another.
  ///
  /// Only for a first commit that is not before ``horizon``. Cost: linear in the deletions since.
  func deletions(in collection: Int, after revision: Revision, upTo commit: Revision) -> [RecordKey: Revision] {
    var found: [RecordKey: Revision] = [:]
    for deletion in deletions.reversed() {
      // The log ascends by revision, so all that is left is older.
      guard deletion.revision > revision else { break }
      if deletion.collection == collection, deletion.revision <= commit, found[deletion.key] == nil {
        found[deletion.key] = deletion.revision
      }
    }
    return found
  }
}
