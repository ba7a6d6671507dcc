public import Foundation

/// The findings of opening a store, and what was done about them.
///
/// Nothing is repaired silently: what was cut, removed or found twice is listed here, and ``isClean`` says whether there was anything.
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
  /// The identity of the store, made once when it was created.
  public var storeID: UUID
  /// The newest commit in the store.
  public var commit: Revision
  /// The newest deletion whose tombstone was forgotten; all later ones are known.
  ///
  /// A reader can resume from this revision on. A backend that forgets tombstones must fill it in; it is
  /// ``Revision/zero`` when all are there.
  public var tombstoneHorizon: Revision
  /// Whether this open created the store.
  public var isNew: Bool
  /// The number of records in the store, over all its collections.
  public var recordCount: Int
  /// The collections that hold records, by name.
  ///
  /// The store fills it in when it is open; a backend need not.
  public var collections: [Collection] = []
  /// The number of commits that were replayed from a journal that the last run has left: it did not close the store, or the journal
  /// was not worth folding.
  public var replayedCommits: Int
  /// The torn last write that was cut off, if there was one, and kept aside unless the disk was full.
  public var cutTail: CutTail?
  /// The temporary files of an interrupted run, which were removed.
  public var removedTemporaryFiles: [String]
  /// The records that are over a limit, and all records of a collection of which none decodes; they are kept.
  ///
  /// Only ``LocalRepository/openReport`` has the latter, since only its schema says the type. Records decode when they are first touched:
  /// ``RepositorySnapshot/undecodable`` also lists those that fail then.
  public var undecodable: [UndecodableRecord]
  /// The records that a unique index found equal when it was built: they are kept, and saving them unchanged goes through.
  ///
  /// Only ``LocalRepository/openReport`` has them, since only its schema says what is unique.
  public var duplicates: [Duplicate] = []
  /// The collection that this opening renamed, as ``RepositorySchema/renamedFrom`` says; `nil` when it renamed none.
  ///
  /// Only ``LocalRepository/openReport`` has it. It is no loss, and stays clean.
  public var renamed: Renaming?
  /// The reasons why samples were left out of a repository for previews, one for each; empty for every other repository.
  public var leftOut: [RepositoryError] = []
  /// The time that opening took.
  public var duration: Duration

  /// Whether opening found everything as a clean close leaves it, no two records that a unique index forbids, no sample that was left
  /// out, and no collection of which no record decodes.
  ///
  /// Replaying a journal is not a loss and stays clean. A repository decodes its records when they are first touched. Its opening decodes
  /// records up to the first that decodes, usually one, and all of them only where none does. A record of another schema version
  /// counts as one that decodes: the migration of an older one runs when it is first read, and a newer one waits for the update of the
  /// app. So `true` does not mean that all decode:
  /// ``RepositorySnapshot/undecodable`` lists those that do not.
  public var isClean: Bool {
    cutTail == nil && removedTemporaryFiles.isEmpty && undecodable.isEmpty && duplicates.isEmpty && leftOut.isEmpty
  }

  /// A collection of the store.
  public struct Collection: Hashable, Sendable {
    /// Its name.
    public let name: String
    /// The number of its records.
    public let recordCount: Int
  }

  /// A collection that got another name.
  public struct Renaming: Hashable, Sendable {
    /// The name that it had.
    public let oldName: String
    /// The name that it has now.
    public let name: String
    /// The number of records that moved.
    public let recordCount: Int
  }

  /// Two records that are equal where a unique index allows only one.
  public struct Duplicate: Hashable, Sendable {
    /// The collection that holds them.
    public let collection: String
    /// The index, as its declaration prints.
    public let index: String
    /// The first of the equal records, by id.
    public let first: RecordKey
    /// The other one.
    public let second: RecordKey
  }

  /// The end of a journal that did not hold a whole commit.
  public struct CutTail: Hashable, Sendable {
    /// The path of the journal.
    public var file: String
    /// The offset of the cut, in bytes.
    public var offset: UInt64
    /// The number of bytes that were cut.
    public var byteCount: Int
    /// The path of the file that keeps the bytes.
    ///
    /// Empty when a full disk had no space for them: of a JSON file a write that was not finished is then cut without a copy, and a SQLite
    /// store keeps its log as it is, and opens for reading.
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

  /// Makes a report; backends fill in their findings.
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

/// A record whose bytes are whole but cannot be turned into a value; it is kept and carried through every rewrite.
public struct UndecodableRecord: Sendable {
  /// The collection that holds it.
  public let collection: String
  /// Its key.
  public let key: RecordKey
  /// The commit that wrote it.
  public let revision: Revision
  /// The schema version that wrote it.
  public let schemaVersion: Int
  /// The reason: `.decodingFailed`, `.migrationFailed`, `.tooLarge`; `.newerSchema` for a foreign commit of a newer app.
  public let error: RepositoryError
}

extension UndecodableRecord {
  /// Returns the same record under the name to which a commit has moved it.
  func moved(to collection: String, at commit: Revision) -> Self {
    Self(collection: collection, key: key, revision: commit, schemaVersion: schemaVersion, error: error)
  }
}

/// The findings of reading a whole store back from its files.
///
/// ```swift
/// let report = await store.verify()
/// for problem in report.problems { logger.error("\(problem)") }
/// ```
///
/// Nothing is changed by verifying: a problem in the files stays until the store is opened again, or restored from a backup. A failed
/// automatic checkpoint, or a failed look for the commits of other processes, stays until one succeeds.
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
  /// The newest commit in the files.
  public var commit: Revision
  /// The number of records that were read and found whole.
  public var recordCount: Int
  /// The number of tombstones of deleted records that were read and found whole.
  public var tombstoneCount: Int
  /// The problems, each with its file and offset where they are known; none in a sound store.
  public var problems: [RepositoryError]
  /// The time that it took.
  public var duration: Duration

  /// Whether no problem was found.
  public var isSound: Bool { problems.isEmpty }

  /// Makes a report; backends fill in their findings.
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
