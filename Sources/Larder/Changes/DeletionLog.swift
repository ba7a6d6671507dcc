internal import DequeModule

/// A log of a store's newest deletions, from which a resumed reader gets the keys that were deleted since its revision.
///
/// Invariant: the log holds every deletion after ``horizon``. If a deleted record is saved again, its deletion stays in the log. A reader
/// of the log must therefore check whether the records of the commit that it reads contain the deleted key.
struct DeletionLog: Sendable {
  struct Deletion: Sendable {
    let collection: Int
    let key: RecordKey
    let revision: Revision
  }

  private let limit: Int
  private var deletions: Deque<Deletion>
  /// Revision up to which the log may have dropped deletions.
  private(set) var horizon: Revision

  /// Creates a log of the deletions that the backend returned when the store was opened.
  init(_ deletions: [Deletion] = [], horizon: Revision = .zero, limit: Int) {
    self.limit = limit
    self.horizon = horizon
    self.deletions = []
    append(deletions)
  }

  /// Adds deletions that are newer than all deletions in the log, and drops the oldest ones beyond the limit.
  mutating func append(_ newer: [Deletion]) {
    deletions += newer.sorted { $0.revision < $1.revision }
    // The horizon moves to each dropped deletion, because a reader that resumes from before the horizon must load everything again. If the
    // horizon did not move, a reader that resumes from before it would miss the dropped deletion.
    while deletions.count > limit, let oldest = deletions.popFirst() { horizon = max(horizon, oldest.revision) }
  }

  /// Drops all deletions from the log, none of which may be newer than `commit`.
  mutating func forget(upTo commit: Revision) {
    deletions.removeAll()
    horizon = max(horizon, commit)
  }

  /// Returns the last deletion of each key of a collection after `revision`, up to and including `commit`.
  ///
  /// `revision` must not be before ``horizon``. The cost is linear in the number of logged deletions after `revision`.
  func deletions(in collection: Int, after revision: Revision, upTo commit: Revision) -> [RecordKey: Revision] {
    var found: [RecordKey: Revision] = [:]
    for deletion in deletions.reversed() {
      // The log is sorted by revision, so all remaining deletions are at `revision` or older.
      guard deletion.revision > revision else { break }
      if deletion.collection == collection, deletion.revision <= commit, found[deletion.key] == nil {
        found[deletion.key] = deletion.revision
      }
    }
    return found
  }
}
