/// The progress of rewriting a collection's records of older schema versions in the schema's version.
///
/// ```swift
/// options.migration.progress = { progress in print("\(progress.collection): \(progress.done) of \(progress.total)") }
/// ```
public struct MigrationProgress: Sendable {
  /// The stage of a rewrite.
  public enum Phase: Hashable, Sendable {
    /// When the repository was opened, no record had an older schema version.
    case notNeeded
    /// Records of older schema versions exist and are migrated as they are read, but rewriting them has not begun.
    case waiting
    /// The store is being copied as a backup, or older records are being rewritten.
    case running
    /// Every record of an older version was rewritten, was changed by another write meanwhile, or could not be migrated.
    case finished
    /// Rewriting has ended early, with ``MigrationProgress/error``, and continues at the next open.
    case stopped
  }

  /// The name of the collection.
  public let collection: String
  /// The schema version to which the records are migrated.
  public let version: Int
  /// The stage of the rewrite.
  public internal(set) var phase: Phase
  /// The number of records of older schema versions that the rewrite has found.
  ///
  /// The total is 0 before rewriting begins. In a `.shared` store the total grows with the records that older programs save.
  public internal(set) var total = 0
  /// The number of records that have been rewritten.
  public internal(set) var rewritten = 0
  /// The number of records that another write saved or deleted before the rewrite reached them.
  public internal(set) var skipped = 0
  /// The number of records that could not be migrated and were left unchanged.
  public internal(set) var failureCount = 0
  /// The first records that could not be migrated, at most 1,000, with the reason for each.
  public internal(set) var failures: [UndecodableRecord] = []
  /// The path of a backup of the store from before its first record of ``version``, made by this rewrite or an earlier one.
  ///
  /// The path is `nil` if no backup is needed yet or if no backup exists.
  public internal(set) var backupFile: String?
  /// The reason why rewriting has ended early, or `nil` if it has not.
  ///
  /// The error has one of the codes of ``LocalRepository/finishMigration()`` except `.cancelled` and `.unsupported`.
  public internal(set) var error: RepositoryError?

  static let failureLimit = 1_000

  /// The number of records of older schema versions that the rewrite has not reached or could not migrate.
  ///
  /// If the phase is `.finished`, every remaining record is one that could not be migrated, and `snapshot.undecodable` lists it. The count
  /// is 0 before rewriting begins.
  public var remainingCount: Int { total - rewritten - skipped }

  /// The number of records that the rewrite has reached, whether rewritten, skipped or failed.
  public var done: Int { rewritten + skipped + failureCount }

  mutating func note(_ failure: UndecodableRecord) {
    failureCount += 1
    // `failures` is bounded, because a faulty migration step fails for every record of a collection.
    if failures.count < Self.failureLimit { failures.append(failure) }
  }
}
