public import Foundation

/// A report on the opening of a store: the findings, and the repairs that were made.
///
/// Opening never repairs a store silently. The report of an opening lists every unfinished journal end that was cut, every temporary file
/// that was removed, damage in indexes, and every pair of records that a unique index found equal. Read ``isClean`` to check whether the
/// report lists any cut tail, removed file, undecodable record, damaged index, duplicate or left-out sample.
///
/// ```swift
/// let report = spots.openReport
/// if let cut = report.cutTail { logger.warning("cut \(cut.byteCount) bytes, kept in \(cut.quarantineFile)") }
/// ```
///
/// ## Topics
///
/// ### Findings
///
/// - ``isClean``
/// - ``cutTail-swift.property``
/// - ``removedTemporaryFiles``
/// - ``undecodable``
/// - ``damagedIndexes``
/// - ``duplicates``
/// - ``leftOut``
///
/// ### The store
///
/// - ``storeID``
/// - ``commit``
/// - ``isNew``
/// - ``recordCount``
/// - ``collections``
/// - ``residency``
/// - ``renamed``
/// - ``isIndexRebuilt``
/// - ``replayedCommits``
/// - ``tombstoneHorizon``
/// - ``duration``
public struct OpenReport: Sendable {
  /// Identity of the store, made when the store was created.
  public var storeID: UUID
  /// Number of the newest commit in the store.
  public var commit: Revision
  /// Revision of the newest deletion whose tombstone was forgotten.
  ///
  /// The store still has the tombstones of all later deletions, so a reader can resume a feed of changes from this revision on.
  /// `tombstoneHorizon` is ``Revision/zero`` if no tombstone was forgotten. A backend that forgets tombstones must set `tombstoneHorizon`.
  public var tombstoneHorizon: Revision
  /// Whether this opening has created the store.
  public var isNew: Bool
  /// Number of records in all collections of the store.
  public var recordCount: Int
  /// Collections that hold records, sorted by name.
  ///
  /// The store sets `collections` once it is open, so a backend need not set it.
  public var collections: [Collection] = []
  /// Place of the store's records: `.full`, or `.onDisk` with the size of each collection's cache.
  ///
  /// The store sets `residency` once it is open. A collection may have another residency: see ``RepositorySchema/residency``. For a store
  /// on disk, `undecodable` lists no record over a limit, since the opening does not read the records.
  public internal(set) var residency = Residency.full
  /// Whether this opening has read the whole main file of a JSON store on disk to make its index file anew.
  ///
  /// The opening makes the index file anew if it is missing or damaged, or if another opening has written the main file without it. The
  /// answers of the store do not depend on the index file, so ``isClean`` stays `true`.
  public var isIndexRebuilt = false
  /// Number of commits that this opening has replayed from a journal that an earlier run of the app has left.
  ///
  /// A run of the app leaves a journal if it did not close the store, or if the journal was not worth folding into the main file on close.
  public var replayedCommits: Int
  /// Torn last write of a journal or log, which was cut off, or `nil` if the last write was whole.
  ///
  /// The bytes of a torn write are kept in a quarantine file, unless the disk was full.
  public var cutTail: CutTail?
  /// Paths of temporary files that an interrupted run of the app had left and that this opening has removed.
  public var removedTemporaryFiles: [String]
  /// Records whose size or JSON depth is over a limit, and, if no record of a collection decodes, all records of that collection.
  ///
  /// Undecodable records are kept in the store. Only ``LocalRepository/openReport`` lists records that do not decode, since the schema of a
  /// repository names the type of its records. A repository decodes a record at its first use. ``RepositorySnapshot/undecodable`` also
  /// lists the records that have failed to decode since the store was opened.
  public var undecodable: [UndecodableRecord]
  /// Damage that this opening has found in indexes that the storage keeps.
  ///
  /// The next commit drops damaged indexes, and the first query that needs such an index builds it anew. No record is lost with an index.
  public var damagedIndexes: [RepositoryError] = []
  /// Pairs of records that a unique index found equal when the repository was opened.
  ///
  /// Duplicate records are kept in the store, and you can save them unchanged. Only ``LocalRepository/openReport`` lists duplicates, since
  /// only the schema of a repository declares unique indexes.
  public var duplicates: [Duplicate] = []
  /// Collection that this opening has renamed because of ``RepositorySchema/renamedFrom``, or `nil` if no collection was renamed.
  ///
  /// Only ``LocalRepository/openReport`` reports a renaming. The renaming of a collection loses no data, so ``isClean`` stays `true`.
  public var renamed: Renaming?
  /// Reasons why samples were left out of a repository for previews, one error for each sample.
  ///
  /// `leftOut` is empty for every repository that is not made for previews.
  public var leftOut: [RepositoryError] = []
  /// Time that the opening of the store took.
  public var duration: Duration

  /// Whether the opening has found the store in the state in which a clean close leaves it.
  ///
  /// `isClean` is `false` if bytes of a journal were cut, a temporary file was removed, a record is over a limit, an index in the storage
  /// was damaged, a unique index found two records equal, a sample was left out, or no record of a collection decodes. Replaying a journal
  /// loses no data, so ``isClean`` stays `true`.
  ///
  /// The value `true` does not mean that all records decode, because a repository decodes a record at its first use. Opening decodes the
  /// records of a collection up to the first one that decodes, usually one record, and all records only if none decodes. For ``isClean``, a
  /// record of another schema version counts as a record that decodes. A record of an older schema version is migrated when it is first
  /// read, and a record of a newer version can be read after an update of the app. ``RepositorySnapshot/undecodable`` lists the records
  /// that do not decode.
  public var isClean: Bool {
    // `renamed` and `replayedCommits` do not count, because a renaming and the replay of a journal lose no data.
    cutTail == nil && removedTemporaryFiles.isEmpty && undecodable.isEmpty && damagedIndexes.isEmpty && duplicates.isEmpty
      && leftOut.isEmpty
  }

  /// A collection of the store, with the number of its records.
  public struct Collection: Hashable, Sendable {
    /// Name of the collection.
    public let name: String
    /// Number of records in the collection.
    public let recordCount: Int
  }

  /// A collection that was renamed.
  public struct Renaming: Hashable, Sendable {
    /// Name that the collection had before it was renamed.
    public let oldName: String
    /// Name of the collection after it was renamed.
    public let name: String
    /// Number of records in the renamed collection.
    public let recordCount: Int
  }

  /// Two records that are equal where a unique index allows only one.
  public struct Duplicate: Hashable, Sendable {
    /// The collection that holds both equal records.
    public let collection: String
    /// The unique index, as the text that its declaration prints.
    public let index: String
    /// The key of the equal record whose id comes first.
    public let first: RecordKey
    /// The key of another record with the same indexed values.
    public let second: RecordKey
  }

  /// A cut that removed the bytes at the end of a journal, because they did not form a whole commit.
  public struct CutTail: Hashable, Sendable {
    /// Path of the journal that was cut.
    public var file: String
    /// Offset in the journal at which the cut begins, in bytes.
    public var offset: UInt64
    /// Number of bytes that were cut.
    public var byteCount: Int
    /// Path of the file that keeps the bytes that were cut from the journal.
    ///
    /// `quarantineFile` is empty if a full disk had no space for the cut bytes. Without space for a copy of the bytes, opening a JSON file
    /// cuts the unfinished write and loses its bytes. Without space for a copy of the bytes, a SQLite store keeps its log unchanged and
    /// opens for reading.
    public var quarantineFile: String
    /// Whether the cut bytes may hold an acknowledged write, because damage is as likely a cause as a torn write.
    public var isAmbiguous: Bool

    /// Makes the description of a cut at the end of a journal.
    public init(file: String, offset: UInt64, byteCount: Int, quarantineFile: String, isAmbiguous: Bool) {
      self.file = file
      self.offset = offset
      self.byteCount = byteCount
      self.quarantineFile = quarantineFile
      self.isAmbiguous = isAmbiguous
    }
  }

  /// Makes the report of an opening, which a backend fills with its findings.
  public init(
    storeID: UUID, commit: Revision, isNew: Bool, recordCount: Int = 0, replayedCommits: Int = 0, cutTail: CutTail? = nil,
    removedTemporaryFiles: [String] = [], undecodable: [UndecodableRecord] = [], duration: Duration = .zero,
    tombstoneHorizon: Revision = .zero
  ) {
    self.storeID = storeID
    self.commit = commit
    self.isNew = isNew
    self.recordCount = recordCount
    self.replayedCommits = replayedCommits
    self.cutTail = cutTail
    self.removedTemporaryFiles = removedTemporaryFiles
    self.undecodable = undecodable
    self.duration = duration
    self.tombstoneHorizon = tombstoneHorizon
  }
}

/// A record whose bytes are whole but cannot be turned into a value.
///
/// The store keeps an undecodable record, and copies it unchanged at every rewrite of its files.
public struct UndecodableRecord: Sendable {
  /// Collection that holds the record.
  public let collection: String
  /// Key of the record.
  public let key: RecordKey
  /// Number of the commit that last changed the record.
  public let revision: Revision
  /// Schema version in which the record is encoded.
  public let schemaVersion: Int
  /// Reason why the record has no value: one of `.decodingFailed`, `.migrationFailed`, `.tooLarge` and `.newerSchema`.
  ///
  /// The code `.newerSchema` means that another process with a newer app committed the record.
  public let error: RepositoryError
}

extension UndecodableRecord {
  /// Returns the description of the record after a commit has moved it to another collection.
  func moved(to collection: String, at commit: Revision) -> Self {
    Self(collection: collection, key: key, revision: commit, schemaVersion: schemaVersion, error: error)
  }
}

/// A report on reading a whole store back from its files.
///
/// ```swift
/// let report = await store.verify()
/// for problem in report.problems { logger.error("\(problem)") }
/// ```
///
/// Verifying changes no file. `verify` reports a problem in the files until the store is opened again or restored from a backup. `verify`
/// reports the failure of an automatic checkpoint until a checkpoint succeeds. `verify` reports a failure to read the commits of other
/// processes until a later attempt succeeds.
///
/// ## Topics
///
/// ### Findings
///
/// - ``isSound``
/// - ``problems``
/// - ``damagedIndexes``
///
/// ### Extent
///
/// - ``commit``
/// - ``recordCount``
/// - ``tombstoneCount``
/// - ``duration``
public struct VerifyReport: Sendable {
  /// Number of the newest commit in the files.
  public var commit: Revision
  /// Number of records that were read and found whole.
  public var recordCount: Int
  /// Number of tombstones of deleted records that were read and found whole.
  public var tombstoneCount: Int
  /// Problems that `verify` has found, each with its file and offset if these are known.
  ///
  /// `problems` is empty for a sound store.
  public var problems: [RepositoryError]
  /// Damage that queries have found in indexes in the storage since the store was opened, the first error of each index.
  ///
  /// A query that finds such damage gives the right answer, and the index is built anew, so `damagedIndexes` does not change ``isSound``.
  /// Damage that `verify` itself finds in an index of a SQLite store is in `problems`, because no query has built that index anew yet.
  /// Earlier queries may have missed records whose keys another program has moved or removed. An index file beside a JSON document is a
  /// cache that a power cut may tear, so damage that `verify` finds there is in `damagedIndexes`, and the index is dropped.
  public internal(set) var damagedIndexes: [RepositoryError] = []
  /// Time that the verification took.
  public var duration: Duration

  /// Whether `verify` has found no problem in the store.
  public var isSound: Bool { problems.isEmpty }

  /// Makes the report of a verification, which a backend fills with its findings.
  public init(
    commit: Revision = .zero, recordCount: Int = 0, tombstoneCount: Int = 0, problems: [RepositoryError] = [],
    duration: Duration = .zero
  ) {
    self.commit = commit
    self.recordCount = recordCount
    self.tombstoneCount = tombstoneCount
    self.problems = problems
    self.duration = duration
  }
}
