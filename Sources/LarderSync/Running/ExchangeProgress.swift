internal import Larder
internal import LarderWire

/// Progress of the exchange of one scope, or the sum over several scopes.
struct ExchangeProgress: Sendable, Hashable {
  /// Number of records of this device that the server has accepted.
  var pushed = 0
  /// Number of records of other devices that were received.
  var pulled = 0
  /// Number of records to receive in total, or `nil` if the server has not counted them.
  var total: Int?

  /// Adds the progress of another scope.
  ///
  /// A scope without a count adds to the total the number of its received records.
  mutating func add(_ other: ExchangeProgress) {
    if total != nil || other.total != nil { total = (total ?? pulled) + (other.total ?? other.pulled) }
    pushed += other.pushed
    pulled += other.pulled
  }
}

/// Records that the server has refused in the current exchange of a scope.
struct ExchangeRefusals: Sendable {
  /// Largest number of single-group pushes that one exchange lets the server refuse for lack of room (507).
  static let limit = 16

  /// Records of the groups for which the server had no room, although each was sent alone.
  private(set) var oversized: Set<RecordAddress> = []
  /// Number of groups in ``oversized``.
  private(set) var oversizedCount = 0
  /// True if the last search found no group to send other than the refused ones.
  var isExhausted = false
  /// Answer of the server to the last group in ``oversized``.
  private(set) var problem: SyncProblem?
  /// Revisions on which the records in conflict were based, as of their last conflict in this exchange.
  private var conflicts: [RecordAddress: Int] = [:]

  /// Adds a group for which the server has no room, although it was sent alone.
  mutating func note(oversized group: [PushedRecord], _ problem: SyncProblem) {
    for record in group { oversized.insert(record.address) }
    oversizedCount += 1
    self.problem = problem
  }

  /// Records the conflicts of a push.
  ///
  /// - Returns: Records that were in conflict on the same base before. They have received nothing since that they could be merged with.
  mutating func note(conflictsOf push: SyncPush, _ receipt: SyncReceipt) -> Set<RecordAddress> {
    var repeated: Set<RecordAddress> = []
    for (group, outcome) in zip(push.groups, receipt.outcomes) {
      guard case .conflict = outcome else { continue }
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
