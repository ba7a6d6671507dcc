public import Foundation

/// A report on the opening of a store: the findings, and the repairs that were made.
///
/// Nothing is repaired silently. Everything that was cut, removed or found twice is listed here. Read ``isClean`` to see whether there was
/// anything.
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
/// - ``renamed``
/// - ``replayedCommits``
/// - ``tombstoneHorizon``
/// - ``duration``
public struct OpenReport: Sendable {
  /// Identity of the store, made when the store was created.
  public var storeID: UUID
  /// Newest commit in the store.
  public var commit: Revision
  /// Revision of the newest deletion whose tombstone was forgotten.
  ///
  /// All later deletions are known, so a reader can resume from this revision on. It is ``Revision/zero`` if no tombstone was forgotten. A
  /// backend that forgets tombstones must fill it in.
  public var tombstoneHorizon: Revision
  /// Whether this open created the store.
  public var isNew: Bool
  /// Number of records in all collections of the store.
  public var recordCount: Int
  /// Collections that hold records, in the order of their names.
  ///
  /// The store fills them in when it is open. A backend need not.
  public var collections: [Collection] = []
  /// Number of commits that were replayed from a journal that the last run has left.
  ///
  /// That run did not close the store, or the journal was not worth folding.
  public var replayedCommits: Int
  /// Torn last write that was cut off, if there was one.
  ///
  /// Its bytes are kept aside unless the disk was full.
  public var cutTail: CutTail?
  /// Temporary files of an interrupted run, which were removed.
  public var removedTemporaryFiles: [String]
  /// Records that are over a limit, and all records of a collection of which none decodes.
  ///
  /// They are kept in the store. Only ``LocalRepository/openReport`` has records that do not decode, since its schema names their type.
  /// A repository decodes a record at its first use. ``RepositorySnapshot/undecodable`` also lists records that failed to decode since.
  public var undecodable: [UndecodableRecord]
  /// Records that a unique index found equal when it was built.
  ///
  /// They are kept, and you can save them unchanged. Only ``LocalRepository/openReport`` has them, since only its schema declares unique
  /// indexes.
  public var duplicates: [Duplicate] = []
  /// Collection that this opening renamed, as ``RepositorySchema/renamedFrom`` says, or `nil` if it renamed none.
  ///
  /// Only ``LocalRepository/openReport`` has it. A renaming loses nothing, and the report stays clean.
  public var renamed: Renaming?
  /// Reasons why samples were left out of a repository for previews, one for each sample.
  ///
  /// Every other repository has none.
  public var leftOut: [RepositoryError] = []
  /// Time that opening took.
  public var duration: Duration

  /// Whether opening found everything as a clean close leaves it.
  ///
  /// It is `false` if bytes were cut, a temporary file was removed, a record is over a limit, a unique index found two records equal, a
  /// sample was left out, or no record of a collection decodes. Replaying a journal is not a loss and stays clean.
  ///
  /// `true` does not mean that all records decode, because a repository decodes them when they are first touched. Opening decodes records
  /// up to the first that decodes, usually one, and all of them only if none does. A record of another schema version counts as one that
  /// decodes: the migration of an older one runs when it is first read, and a newer one waits for the update of the app.
  /// ``RepositorySnapshot/undecodable`` lists the records that do not decode.
  public var isClean: Bool {
    // A renaming and a replayed journal are no loss, so they do not count.
    cutTail == nil && removedTemporaryFiles.isEmpty && undecodable.isEmpty && duplicates.isEmpty && leftOut.isEmpty
  }

  /// A collection of the store, with the number of its records.
  public struct Collection: Hashable, Sendable {
    /// Name of the collection.
    public let name: String
    /// Number of its records.
    public let recordCount: Int
  }

  /// A collection that got another name.
  public struct Renaming: Hashable, Sendable {
    /// Name that the collection had.
    public let oldName: String
    /// Name that it has now.
    public let name: String
    /// Number of records that moved.
    public let recordCount: Int
  }

  /// Two records that are equal where a unique index allows only one.
  public struct Duplicate: Hashable, Sendable {
    /// The collection that holds them.
    public let collection: String
    /// The index, as its declaration prints it.
    public let index: String
    /// The first of the equal records, by id.
    public let first: RecordKey
    /// The other one.
    public let second: RecordKey
  }

  /// The end of a journal that did not hold a whole commit.
  public struct CutTail: Hashable, Sendable {
    /// Path of the journal.
    public var file: String
    /// Offset of the cut, in bytes.
    public var offset: UInt64
    /// Number of bytes that were cut.
    public var byteCount: Int
    /// Path of the file that keeps the bytes.
    ///
    /// It is empty if a full disk had no space for them. A JSON file's write that was not finished is then cut without a copy. A SQLite
    /// store then keeps its log as it is and opens for reading.
    public var quarantineFile: String
    /// Whether damage is as likely as a torn write, so that an acknowledged write may be among the bytes.
    public var isAmbiguous: Bool

    /// Makes the description of a cut.
    public init(file: String, offset: UInt64, byteCount: Int, quarantineFile: String, isAmbiguous: Bool) {
      self.file = file
      self.offset = offset
      self.byteCount = byteCount
      self.quarantineFile = quarantineFile
      self.isAmbiguous = isAmbiguous
    }
  }

  /// Makes a report, in which a backend fills in its findings.
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
/// It is kept and carried through every rewrite of the store.
public struct UndecodableRecord: Sendable {
  /// Collection that holds the record.
  public let collection: String
  /// Key of the record.
  public let key: RecordKey
  /// Commit that wrote the record.
  public let revision: Revision
  /// Schema version that wrote the record.
  public let schemaVersion: Int
  /// Reason why it has no value: `.decodingFailed`, `.migrationFailed` or `.tooLarge`, or `.newerSchema` for a foreign commit of a newer
  /// app.
  public let error: RepositoryError
}

extension UndecodableRecord {
  /// Returns the same record under the name to which a commit has moved it.
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
/// Verifying changes nothing. A problem in the files stays until the store is opened again or restored from a backup. A failed automatic
/// checkpoint, or a failed look for the commits of other processes, stays until one succeeds.
///
/// ## Topics
///
/// ### Findings
///
/// - ``isSound``
/// - ``problems``
///
/// ### Extent
///
/// - ``commit``
/// - ``recordCount``
/// - ``tombstoneCount``
/// - ``duration``
public struct VerifyReport: Sendable {
  /// Newest commit in the files.
  public var commit: Revision
  /// Number of records that were read and found whole.
  public var recordCount: Int
  /// Number of tombstones of deleted records that were read and found whole.
  public var tombstoneCount: Int
  /// Problems that were found, each with its file and offset where they are known.
  ///
  /// A sound store has none.
  public var problems: [RepositoryError]
  /// Time that verifying took.
  public var duration: Duration

  /// Whether no problem was found.
  public var isSound: Bool { problems.isEmpty }

  /// Makes a report, in which a backend fills in its findings.
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
