internal import Larder

/// The progress of exchanges, of one scope or of several.
struct ExchangeProgress: Sendable, Hashable {
  /// The number of records of this device that the server has accepted.
  var pushed = 0
  /// The number of records of other devices that were taken.
  var pulled = 0
  /// The number of records to take in all, as far as the server has counted them.
  var total: Int?

  /// Adds the progress of another scope; where that one was not counted, with what was taken of it.
  mutating func add(_ other: ExchangeProgress) {
    if total != nil || other.total != nil { total = (total ?? pulled) + (other.total ?? other.pulled) }
    pushed += other.pushed
    pulled += other.pulled
  }
}

/// The records that a server has refused within one exchange.
struct ExchangeRefusals: Sendable {
  /// The most pushes of a single group that one exchange lets the server refuse for lack of room.
  static let limit = 16

  /// The records of the groups that the server had no room for, each of which was sent alone.
  private(set) var oversized: Set<RecordAddress> = []
  /// The number of those groups.
  private(set) var oversizedCount = 0
  /// Whether the last look found no other group to send.
  var isExhausted = false
  /// The refusal of the last of them.
  private(set) var problem: SyncProblem?
  /// The revisions that the records in conflict were based on.
  private var conflicts: [RecordAddress: Int] = [:]

  /// Notes a group that the server has no room for, though it was sent alone.
  mutating func note(oversized group: [PushedRecord], _ problem: SyncProblem) {
    for record in group { oversized.insert(record.address) }
    oversizedCount += 1
    self.problem = problem
  }

  /// Notes the conflicts of a push.
  /// - Returns: The records that were in conflict before, on the same base: nothing has come since that they could be merged with.
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
  /// The address of the record.
  var address: RecordAddress { RecordAddress(collection: collection, key: RecordKey(id)) }
  /// The key of its entry.
  var entryKey: RecordKey { SyncEntry.key(collection, RecordKey(id)) }
}
