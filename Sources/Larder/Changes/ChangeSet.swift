// Changes/ announces the commits of a store to its readers.
// Invariant: changes are announced in the order of commits, each after its commit is durable and visible. A reader's buffer is bounded.
// Called by StoreCore. Apps read the change sets.

/// The changes of one commit in a repository, or of several merged commits.
///
/// Commits are merged if the reader is slow, or if another process made them. Apply change sets in order to the contents of the repository
/// at the revision that you began from. After each change set you have the contents of the repository at its ``revision``, and never a
/// state between two commits.
public struct ChangeSet<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  /// The revision of the newest commit that the change set covers.
  ///
  /// Store `revision` with the data that you derive from the changes. Pass `revision` to ``LocalRepository/changes(since:)`` to get the
  /// changes after it.
  public let revision: Revision
  /// The changes of the change set, one for each record.
  ///
  /// A change set has at least one change.
  public let changes: [Change]

  /// The change of one record.
  public struct Change: Sendable {
    /// The kind of a change, from the record at the reader's previous revision to the record at the revision of the change set.
    public enum Kind: Hashable, Sendable {
      /// The record did not exist before the change.
      case inserted
      /// The record existed, and a write replaced it.
      case updated
      /// The record existed, and a write deleted it.
      ///
      /// A reader that resumes from a revision also gets `deleted` for a record that was inserted and deleted since that revision.
      case deleted
      /// The record was inserted or updated before the reader resumed its change feed.
      ///
      /// The store cannot distinguish an insertion from an update that was made before the reader resumed. The same holds for a store whose
      /// records stay in the storage, if another process has written and the records before can no longer be read, as after a suspension.
      case upserted
    }

    /// The key of the record.
    public let key: RecordKey
    /// The kind of the change.
    public let kind: Kind
    /// The revision of the commit that made the change.
    ///
    /// For merged changes of one record, `revision` is the commit of the last change.
    public let revision: Revision
    /// The origin of the change: a write of this process, another process, another device, or a migration.
    ///
    /// Merged changes of one record have the origin of the last change that is no migration, or `.migration` if all are migrations.
    public let origin: ChangeOrigin

    private let oldSlot: RecordSlot?
    private let newSlot: RecordSlot?
    private let coder: RecordCoder<Item>
  }
}

extension ChangeSet.Change: Identifiable {
  /// The id of the record.
  ///
  /// `id` is `nil` only if neither ``old`` nor ``new`` can be read and the id cannot be derived from ``key``. Some id types with a custom
  /// coding cannot be derived from the key.
  public var id: Item.ID? { new?.id ?? old?.id ?? coder.keys.id(of: key) }

  /// The value of the record before the change.
  ///
  /// `old` is `nil` for a new record, after a resume (see ``Kind/upserted``), and if the value does not decode. For merged changes of one
  /// record, `old` is the value before the first change. Reading `old` decodes the value, unless the record was read before.
  public var old: Item? { Self.value(oldSlot, coder).item }

  /// The value of the record after the change.
  ///
  /// `new` is `nil` for a deleted record, and if the value does not decode (see ``error``). For merged changes of one record, `new` is the
  /// value after the last change.
  public var new: Item? { Self.value(newSlot, coder).item }

  /// The error that explains why ``new`` is `nil` although the record exists.
  ///
  /// The code of the error is `.decodingFailed`, `.migrationFailed`, `.newerSchema` or `.tooLarge`.
  public var error: RepositoryError? { Self.value(newSlot, coder).error }

  init(_ change: RecordChange, _ coder: RecordCoder<Item>) {
    key = change.key
    // The first change set after a resume has no old values, so an insertion in it cannot be distinguished from an update.
    let insertion: Kind = change.origin == .unknown ? .upserted : .inserted
    kind = change.new == nil ? .deleted : change.old == nil ? insertion : change.hasUnknownOld ? .upserted : .updated
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
  /// A write of this process through this opening of the store.
  case thisProcess
  /// A write of another process that has the store open, or a write of this process through another opening of the store.
  case anotherProcess
  /// A write of another device, which arrived by sync in this process.
  ///
  /// Other processes that have the store open report the same write as ``anotherProcess``.
  case remote
  /// A migration of the record to a newer schema version, which does not change the meaning of the record.
  case migration
  /// The origin is not known, because the reader had no open change feed when the change was made.
  ///
  /// The changes in the first change set after a resume have the origin `unknown`.
  case unknown
}

/// One record's change in one commit, with the stored record before the change and after it.
struct RecordChange: Sendable {
  let collection: Int
  let key: RecordKey
  let revision: Revision
  let origin: ChangeOrigin
  /// The record before the change, or `nil` for a new record.
  let old: RecordSlot?
  /// The record after the change, or `nil` for a deleted record.
  let new: RecordSlot?

  /// Whether the record before the change can no longer be read from the storage, and may not have existed.
  var hasUnknownOld: Bool { old?.isStub ?? false }

  /// The deletion log's entry for this change, or `nil` if the change is no deletion.
  var deletion: DeletionLog.Deletion? { new == nil ? .init(collection: collection, key: key, revision: revision) : nil }
}
