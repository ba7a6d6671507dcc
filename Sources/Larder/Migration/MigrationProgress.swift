/// How far the records of a collection have been brought to the schema's version.
public struct MigrationProgress: Sendable {
  /// What is being done.
  public enum Phase: Hashable, Sendable {
    /// No record was older when the repository was opened.
    case notNeeded
    /// Older records are there, and are brought up as they are read; rewriting them has not begun.
    case waiting
    /// The store is being copied, or older records are being rewritten.
    case running
    /// Every older record was rewritten, changed by somebody else meanwhile, or has failed.
    case finished
    /// Rewriting has ended early, with ``MigrationProgress/error``; what is left goes on at the next open.
    case stopped
  }

  /// The collection.
  public let collection: String
  /// The version that the records are brought to.
  public let version: Int
  /// What is being done.
  public internal(set) var phase: Phase
  /// How many older records there were when rewriting began; 0 before that.
  public internal(set) var total = 0
  /// How many have been rewritten.
  public internal(set) var rewritten = 0
  /// How many were saved or deleted by somebody else before it was their turn.
  public internal(set) var skipped = 0
  /// How many could not be brought up; they stay as they were.
  public internal(set) var failureCount = 0
  /// The first of those that could not be brought up, with the reason; at most 1,000.
  public internal(set) var failures: [UndecodableRecord] = []
  /// The copy of the store from before the first record of ``version``, made by this run or an earlier one; `nil` when none is needed yet,
  /// or none is there.
  public internal(set) var backupFile: String?
  /// Why rewriting has ended early, if it has: `.full`, `.poisoned`, `.inputOutput`, `.closed`.
  public internal(set) var error: RepositoryError?

  static let failureLimit = 1_000

  init(collection: String, version: Int, phase: Phase) {
    self.collection = collection
    self.version = version
    self.phase = phase
  }

  /// How many older records are left: those that were not dealt with yet, and those that could not be brought up.
  ///
  /// When the phase is `.finished`, these are the ones of ``failures``; `snapshot.undecodable` lists them too. It is 0 before rewriting begins.
  public var remainingCount: Int { total - rewritten - skipped }

  /// How many records have been dealt with.
  public var done: Int { rewritten + skipped + failureCount }

  mutating func note(_ failure: UndecodableRecord) {
    failureCount += 1
    if failures.count < Self.failureLimit { failures.append(failure) }
  }
}
