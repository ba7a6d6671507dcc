internal import DequeModule

/// The newest deletions of a store, so that a reader that resumes gets the keys that were deleted meanwhile.
///
/// Invariant: it holds every deletion after ``horizon``. A record that was saved again stays in it until it is the oldest: a reader
/// of the log looks into the records of the same commit.
struct DeletionLog: Sendable {
  struct Deletion: Sendable {
    let collection: Int
    let key: RecordKey
    let revision: Revision
  }

  private let limit: Int
  private var deletions: Deque<Deletion>
  /// Deletions up to this revision may have been forgotten.
  private(set) var horizon: Revision

  /// Takes over what was found at open.
  init(_ deletions: [Deletion] = [], horizon: Revision = .zero, limit: Int) {
    self.limit = limit
    self.horizon = horizon
    self.deletions = []
    append(deletions)
  }

  /// Adds deletions newer than all before, and forgets the oldest when there are too many.
  mutating func append(_ newer: [Deletion]) {
    deletions += newer.sorted { $0.revision < $1.revision }
    while deletions.count > limit, let oldest = deletions.popFirst() { horizon = max(horizon, oldest.revision) }
  }

  /// Gives up what is known up to a commit.
  mutating func forget(upTo commit: Revision) {
    deletions.removeAll()
    horizon = max(horizon, commit)
  }

  /// Returns the last deletion of each key of a collection after a commit, up to and with another.
  ///
  /// Only for a revision that is not before ``horizon``. Cost: linear in the deletions since.
  func deletions(in collection: Int, after revision: Revision, upTo commit: Revision) -> [RecordKey: Revision] {
    var found: [RecordKey: Revision] = [:]
    for deletion in deletions.reversed() {
      guard deletion.revision > revision else { break }
      if deletion.collection == collection, deletion.revision <= commit, found[deletion.key] == nil {
        found[deletion.key] = deletion.revision
      }
    }
    return found
  }
}
