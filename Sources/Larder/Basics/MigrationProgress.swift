/// The progress of a migration that rewrites a collection's records of older schema versions in the newest version.
///
/// ```swift
/// options.migration.progress = { progress in print("\(progress.collection): \(progress.done) of \(progress.total)") }
/// ```
public struct MigrationProgress: Sendable {
  /// The stage of a migration that rewrites old records.
  public enum Phase: Hashable, Sendable {
    /// When the repository was opened, no record had an older schema version.
    case notNeeded
    /// Records of older schema versions exist and are migrated as they are read, but rewriting them has not begun.
    case waiting
    /// The store is being copied as a backup, or older records are being rewritten.
    case running
    /// Every record of an older schema version was rewritten, was changed by another write meanwhile, or could not be migrated.
    case finished
    /// Rewriting old records has ended early with ``MigrationProgress/error``, and can be continued.
    case stopped
  }

  /// The name of the collection whose records are migrated.
  public let collection: String
  /// The schema version to which the records are migrated.
  public let version: Int
  /// The present stage of the migration.
  public internal(set) var phase: Phase
  /// The number of records of older schema versions that the migration has found.
  ///
  /// The total is 0 before rewriting begins. In a `.shared` store the total grows with the records that older programs save.
  public internal(set) var total = 0
  /// The number of records that the migration has rewritten.
  public internal(set) var rewritten = 0
  /// The number of records that another write has saved or deleted before the migration reached them.
  public internal(set) var skipped = 0
  /// The number of records that could not be migrated and were left unchanged.
  public internal(set) var failureCount = 0
  /// The first records that could not be migrated, at most 1,000, with the reason for each.
  public internal(set) var failures: [UndecodableRecord] = []
  /// The path of a backup that this or an earlier migration run made of the store before its first record of ``version``.
  ///
  /// `backupFile` is `nil` if no backup is needed yet or if no backup exists.
  public internal(set) var backupFile: String?
  /// The reason why the migration has ended early, or `nil` if it has not ended early.
  ///
  /// The error has one of the codes of ``LocalRepository/finishMigration()`` except `.cancelled` and `.unsupported`.
  public internal(set) var error: RepositoryError?

  static let failureLimit = 1_000

  /// The number of records of older schema versions that the migration has not reached or could not migrate.
  ///
  /// If the phase is `.finished`, every remaining record is one that could not be migrated, and `snapshot.undecodable` lists it.
  /// `remainingCount` is 0 before the rewriting of records begins.
  public var remainingCount: Int { total - rewritten - skipped }

  /// The number of records that the migration has reached, whether it rewrote them, skipped them or failed.
  public var done: Int { rewritten + skipped + failureCount }

  mutating func note(_ failure: UndecodableRecord) {
    failureCount += 1
    // `failures` is bounded, because a faulty migration step fails for every record of a collection.
    if failures.count < Self.failureLimit { failures.append(failure) }
  }
}
