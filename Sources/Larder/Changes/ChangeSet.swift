// Changes/ announces commits to the readers of a store.
// Invariant: a change is announced after it is durable and visible, in the order of commits, and the changes that are kept for a slow
// reader are bounded.
// Called by StoreCore. Apps read the sets.

/// The changes of one commit in a repository, or of several commits that were merged because the reader was slow or another process made
/// them.
///
/// Apply change sets in order to the contents at the revision that you began from. After each set you have the contents of the repository
/// at ``revision``, and never a state between two commits.
public struct ChangeSet<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  /// The newest commit that the set covers.
  ///
  /// Store it with the data that you derive from the changes, and pass it to ``LocalRepository/changes(since:)`` to go on from there.
  public let revision: Revision
  /// The changes, which are never empty and have each record once.
  public let changes: [Change]

  /// The change of one record.
  public struct Change: Sendable {
    /// The kind of a change, between the record that the reader knew and the set's revision.
    public enum Kind: Hashable, Sendable {
      /// There was no such record.
      case inserted
      /// There was a record, and it was replaced.
      case updated
      /// There was a record, and it was deleted.
      ///
      /// A reader that resumes also gets this kind for records that were inserted and deleted meanwhile.
      case deleted
      /// The record was inserted or updated before a feed was resumed, and which of the two is not known.
      case upserted
    }

    /// The key of the record.
    public let key: RecordKey
    /// The kind of the change.
    public let kind: Kind
    /// The commit of the change or, for merged changes, of the last one.
    public let revision: Revision
    /// The origin of the change.
    ///
    /// Merged changes have the origin of the last that was not a migration, or `.migration` if all were.
    public let origin: ChangeOrigin

    private let oldSlot: RecordSlot?
    private let newSlot: RecordSlot?
    private let coder: RecordCoder<Item>
  }
}

extension ChangeSet.Change: Identifiable {
  /// The id of the record.
  ///
  /// It is `nil` only if neither value can be read and the key does not lead back to the id, as for an id type with a coding of its own.
  public var id: Item.ID? { new?.id ?? old?.id ?? coder.keys.id(of: key) }

  /// The value before the change.
  ///
  /// It is `nil` for a new record, after a resume (see ``Kind/upserted``), and if the value does not decode. Merged changes have the value
  /// before the first. Cost: a decode, unless the record was read before.
  public var old: Item? { Self.value(oldSlot, coder).item }

  /// The value after the change.
  ///
  /// It is `nil` for a deleted record, and if the value does not decode (see ``error``). Merged changes have the value after the last.
  public var new: Item? { Self.value(newSlot, coder).item }

  /// The reason that ``new`` cannot be read although the record exists: `.decodingFailed`, `.migrationFailed`, `.newerSchema` or
  /// `.tooLarge`.
  public var error: RepositoryError? { Self.value(newSlot, coder).error }

  init(_ change: RecordChange, _ coder: RecordCoder<Item>) {
    key = change.key
    // A resumed feed has no old values at first, so an insertion looks like an update.
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

/// The origin of a committed change.
public enum ChangeOrigin: Hashable, Sendable {
  /// A write of this process.
  case thisProcess
  /// A write of another process that has the same store open, or of this one through another opening of it.
  case anotherProcess
  /// A write of another device that arrived by sync.
  ///
  /// In a process beside the one that synced, it is ``anotherProcess``.
  case remote
  /// A migration of the record to a newer schema version, which does not change its meaning.
  case migration
  /// Not known, because no feed was open.
  ///
  /// The first set of a resumed feed has this origin.
  case unknown
}

/// One record's change in one commit, with the slots of the record before and after it.
struct RecordChange: Sendable {
  let collection: Int
  let key: RecordKey
  let revision: Revision
  let origin: ChangeOrigin
  /// The record before the change, or `nil` for a new record.
  let old: RecordSlot?
  /// The record after the change, or `nil` for a deleted record.
  let new: RecordSlot?

  /// The entry of this change in the deletion log, or `nil` if it is no deletion.
  var deletion: DeletionLog.Deletion? { new == nil ? .init(collection: collection, key: key, revision: revision) : nil }
}
