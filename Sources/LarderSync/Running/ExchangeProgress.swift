internal import Larder
internal import LarderWire

/// Progress of the exchange of one scope, or the sum over several scopes.
struct ExchangeProgress: Sendable, Hashable {
  /// Number of records of this device that the server has accepted.
  var pushed = 0
  /// Number of records of other devices that were received.
  var pulled = 0
  /// Total number of records to receive, or `nil` if the server has not counted these records.
  var total: Int?

  /// Adds the progress of another scope.
  ///
  /// A scope without a total from the server adds the number of its received records to the sum.
  mutating func add(_ other: ExchangeProgress) {
    if total != nil || other.total != nil { total = (total ?? pulled) + (other.total ?? other.pulled) }
    pushed += other.pushed
    pulled += other.pulled
  }
}

/// Records that the server has refused in the current exchange of a scope.
struct ExchangeRefusals: Sendable {
  /// Largest number of pushes of a single group that the server may refuse for lack of quota (507) in one exchange.
  static let limit = 16

  /// Records of the groups that the server has refused for lack of quota, although each group was sent alone.
  private(set) var oversized: Set<RecordAddress> = []
  /// Number of groups in ``oversized``.
  private(set) var oversizedCount = 0
  /// True if the last search for edits to send found only groups that the server has refused for lack of quota.
  var isExhausted = false
  /// Answer of the server to the last group in ``oversized``.
  private(set) var problem: SyncProblem?
  /// Base revision that each record in conflict had at its last conflict in this exchange.
  private var conflicts: [RecordAddress: Int] = [:]

  /// Adds a group that the server has refused for lack of quota, although the group was sent alone.
  mutating func note(oversized group: [PushedRecord], _ problem: SyncProblem) {
    for record in group { oversized.insert(record.address) }
    oversizedCount += 1
    self.problem = problem
  }

  /// Stores the base revisions of a push's records that are in conflict, and returns the records with a repeated conflict.
  ///
  /// - Returns: The records that were already in conflict with the same base revision. Since that earlier conflict, no newer value of the
  ///   server was merged into these records.
  mutating func note(conflictsOf push: SyncPush, _ receipt: SyncReceipt) -> Set<RecordAddress> {
    var repeated: Set<RecordAddress> = []
    for (group, outcome) in zip(push.groups, receipt.outcomes) {
      guard case .conflict = outcome else { continue }
      // A conflict on another base revision is no repetition, since the record was merged with a newer server value in between.
      for record in group where conflicts.updateValue(record.base, forKey: record.address) == record.base {
        repeated.insert(record.address)
      }
    }
    return repeated
  }
}

extension PushedRecord {
  /// Address of the record.
  var address: RecordAddress { RecordAddress(collection: collection, key: RecordKey(id)) }
  /// Key of the record's entry in the outbox.
  var entryKey: RecordKey { SyncEntry.key(collection, RecordKey(id)) }
}
