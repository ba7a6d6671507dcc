internal import Larder

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
  /// The group that the server has refused, though it was sent alone.
  private(set) var cut: Cut?
  /// The revisions that the records in conflict were based on.
  private var conflicts: [RecordAddress: Int] = [:]

  /// Notes a group that the server has no room for, though it was sent alone.
  mutating func note(oversized group: [PushedRecord], _ problem: SyncProblem) {
    for record in group { oversized.insert(record.address) }
    oversizedCount += 1
    self.problem = problem
  }

  /// A group that the server does not take as a whole, for another reason than the lack of room.
  struct Cut: Sendable {
    /// The records of the group, those that were sent meanwhile included.
    var addresses: Set<RecordAddress> = []
    /// The most records of it that are sent together.
    var limit: Int
  }

  /// Notes a group of several records that the server does not take, though it was sent alone: half as many are sent next.
  mutating func note(divided group: [PushedRecord]) {
    cut = Cut(addresses: cut?.addresses ?? [], limit: max(1, group.count / 2))
    for record in group { cut?.addresses.insert(record.address) }
  }

  /// Notes a push that the server has answered: more of a group that was divided is sent next.
  mutating func note(answered push: SyncPush) {
    guard let cut, push.groups.joined().contains(where: { cut.addresses.contains($0.address) }) else { return }
    if cut.limit < Ledger.recordLimit / 2 { self.cut?.limit *= 2 } else { self.cut = nil }
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
}
