/// The progress of rewriting the older records of a collection at the schema's version.
///
/// ```swift
/// options.migration.progress = { progress in print("\(progress.collection): \(progress.done) of \(progress.total)") }
/// ```
public struct MigrationProgress: Sendable {
  /// The stage of a rewrite.
  public enum Phase: Hashable, Sendable {
    /// No record was older when the repository was opened.
    case notNeeded
    /// Older records exist and are migrated as they are read, but rewriting them has not begun.
    case waiting
    /// The store is being copied, or older records are being rewritten.
    case running
    /// Every older record was rewritten, was changed by another write meanwhile, or has failed.
    case finished
    /// Rewriting has ended early, with ``MigrationProgress/error``, and goes on at the next open.
    case stopped
  }

  /// The name of the collection.
  public let collection: String
  /// The version that the records are brought to.
  public let version: Int
  /// The stage of the rewrite.
  public internal(set) var phase: Phase
  /// The number of older records that rewriting has found.
  ///
  /// It is 0 before rewriting begins. In a shared store it grows with the records that older programs save.
  public internal(set) var total = 0
  /// The number of records that have been rewritten.
  public internal(set) var rewritten = 0
  /// The number of records that another write saved or deleted before it was their turn.
  public internal(set) var skipped = 0
  /// The number of records that could not be migrated and stay as they were.
  public internal(set) var failureCount = 0
  /// The first records that could not be migrated, at most 1,000, with the reason for each.
  public internal(set) var failures: [UndecodableRecord] = []
  /// The copy of the store from before the first record of ``version``, made by this run or an earlier one.
  ///
  /// It is `nil` if no copy is needed yet or if there is none.
  public internal(set) var backupFile: String?
  /// The reason why rewriting has ended early, if it has.
  ///
  /// It has the codes of ``LocalRepository/finishMigration()`` except `.cancelled` and `.unsupported`.
  public internal(set) var error: RepositoryError?

  static let failureLimit = 1_000

  /// The number of older records that are left, because their turn has not come or they could not be migrated.
  ///
  /// If the phase is `.finished`, these are the ones of ``failures``, which `snapshot.undecodable` lists too. It is 0 before rewriting
  /// begins.
  public var remainingCount: Int { total - rewritten - skipped }

  /// The number of records whose turn has come, whether rewritten, skipped or failed.
  public var done: Int { rewritten + skipped + failureCount }

  mutating func note(_ failure: UndecodableRecord) {
    failureCount += 1
    // Bounded, because a faulty step fails for every record.
    if failures.count < Self.failureLimit { failures.append(failure) }
  }
}
