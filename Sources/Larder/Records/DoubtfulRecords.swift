internal import Synchronization

/// The records that changed since a collection's base was made and are not known to decode.
///
/// Copies of a ``RecordMap`` share one until they change. A record that is found to decode is taken out for all of them: it does so for
/// good.
final class DoubtfulRecords: Sendable {
  private let slots: Mutex<RecordTree>

  init() { slots = Mutex(RecordTree()) }

  /// Makes a copy, for a map that is about to change.
  init(_ other: DoubtfulRecords) { slots = Mutex(other.slots.withLock { $0 }) }

  static let none = DoubtfulRecords()

  var count: Int { slots.withLock { $0.count } }

  /// Puts a record in the place of its key, or takes that out; for the only map that has this.
  func set(_ slot: RecordSlot?, for key: RecordKey) {
    slots.withLock { slots in
      guard let slot else { return slots.removeValue(forKey: key) }
      slots.updateValue(slot, forKey: key)
    }
  }

  /// Returns the records that were not decoded yet, or that do not decode.
  ///
  /// Cost: linear in the records that the last call returned, and those that came since.
  func unread() -> [RecordSlot] {
    let slots = slots.withLock { $0 }
    var left = slots
    slots.forEach { key, slot in if slot?.reading == .readable { left.removeValue(forKey: key) } }
    if left.count < slots.count {
      // Two readers may both do it: what is left out decodes, whichever is the last.
      self.slots.withLock { if left.count < $0.count { $0 = left } }
    }
    return left.slots
  }
}
