// Observation/ tells readers what was committed. Invariant: a change is announced after it is durable and visible, in the order of
// commits, and what is kept for a slow reader is bounded. Called by StoreCore; read by apps.

/// The origin of a committed change.
public enum ChangeOrigin: Hashable, Sendable {
  /// A write of this process.
  case thisProcess
  /// A write of another process that has the same store open, or of this one through another opening of it.
  case anotherProcess
  /// A write of another device, which came by sync; in a process beside this one it is ``anotherProcess``.
  case remote
  /// A record brought to a newer schema version; its value means the same.
  case migration
  /// Not known, because no feed was open: in the first set of a feed that is resumed.
  case unknown
}

/// One record's change in one commit, as the store sees it.
struct RecordChange: Sendable {
  let collection: Int
  let key: RecordKey
  let revision: Revision
  let origin: ChangeOrigin
  /// The record before the change; `nil` when it is new.
  let old: RecordSlot?
  /// The record after the change; `nil` when it was deleted.
  let new: RecordSlot?

  /// The deletion that this is; `nil` for any other change.
  var deletion: DeletionLog.Deletion? { new == nil ? .init(collection: collection, key: key, revision: revision) : nil }
}
