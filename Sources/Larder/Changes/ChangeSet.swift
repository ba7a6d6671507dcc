/// The changes of one commit in a repository, or of several that were merged because the reader was slow or another process made them.
///
/// Applied in order to the contents at the revision that a reader began from, change sets lead from one committed state to another: after
/// each, the contents are those of the repository at ``revision``.
public struct ChangeSet<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  /// The newest commit that the set covers.
  ///
  /// Store it with what was made of the changes, and give it to ``LocalRepository/changes(since:)`` to go on from there.
  public let revision: Revision
  /// The changes, each record once; never empty.
  public let changes: [Change]

  /// The change of one record.
  public struct Change: Sendable {
    /// The kind of a change, between the record that the reader knew and the set's revision.
    public enum Kind: Hashable, Sendable {
      /// There was no such record.
      case inserted
      /// There was one, and it was replaced.
      case updated
      /// There was one, and it is gone.
      ///
      /// A reader that resumes is also told of records that came and went meanwhile.
      case deleted
      /// It was inserted or updated before a feed was resumed; which of the two is not known.
      case upserted
    }

    /// The key of the record.
    public let key: RecordKey
    /// The kind of the change.
    public let kind: Kind
    /// The commit of the change; of merged ones, the last.
    public let revision: Revision
    /// The origin of the change.
    ///
    /// Of merged ones it is the origin of the last that was not a migration; `.migration` if all were.
    public let origin: ChangeOrigin

    private let oldSlot: RecordSlot?
    private let newSlot: RecordSlot?
    private let coder: RecordCoder<Item>
  }
}

extension ChangeSet.Change: Identifiable {
  /// The id of the record.
  ///
  /// It is `nil` only where neither value can be read and the key alone does not tell, as for an id type with a coding of its own.
  public var id: Item.ID? { new?.id ?? old?.id ?? coder.keys.id(of: key) }

  /// The value before the change.
  ///
  /// It is `nil` for a new record, after a resume (see ``Kind/upserted``), and when the value does not decode. Of merged changes it is the
  /// value before the first. Cost: a decode, unless the record was read before.
  public var old: Item? { Self.value(oldSlot, coder).item }

  /// The value after the change.
  ///
  /// It is `nil` for a deleted record, and when the value does not decode, see ``error``. Of merged changes it is the value after the last.
  public var new: Item? { Self.value(newSlot, coder).item }

  /// The reason that ``new`` cannot be read, although the record is there: `.decodingFailed`, `.migrationFailed`, `.newerSchema` or
  /// `.tooLarge`.
  public var error: RepositoryError? { Self.value(newSlot, coder).error }

  init(_ change: RecordChange, _ coder: RecordCoder<Item>) {
    key = change.key
    // What a reader that resumes is told has an unknown origin, and no old value.
    let insertion: Kind = change.origin == .unknown ? .upserted : .inserted
    kind = change.new == nil ? .deleted : change.old == nil ? insertion : .updated
    revision = change.revision
    origin = change.origin
    oldSlot = change.old
    newSlot = change.new
    self.coder = coder
  }

  private static func value(_ slot: RecordSlot?, _ coder: RecordCoder<Item>) -> (item: Item?, error: RepositoryError?) {
    guard let slot else { return (nil, nil) }
    do throws(RepositoryError) { return (try slot.value(coder), nil) } catch { return (nil, error) }
  }
}

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
