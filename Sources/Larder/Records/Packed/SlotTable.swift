internal import Foundation
internal import Synchronization

/// The slots of records by position, each made when it is first asked for.
///
/// Unchecked, since the compiler does not see that the memory holds atomics only, which are never moved.
final class SlotTable: @unchecked Sendable {
  private let count: Int
  /// The addresses of the slots, which this owns; 0 where none was made yet.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>

  init(count: Int) {
    self.count = count
    // Zero bytes are atomics of zero, and the system gives pages of them when they are touched.
    let memory = calloc(max(count, 1), MemoryLayout<Atomic<UInt>>.stride) ?? Self.zeros(max(count, 1))
    addresses = memory.bindMemory(to: Atomic<UInt>.self, capacity: max(count, 1))
  }

  /// Returns memory of zeros; as for any array, there must be some.
  private static func zeros(_ count: Int) -> UnsafeMutableRawPointer {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Atomic<UInt>>.stride, alignment: 8)
    memset(memory, 0, count * MemoryLayout<Atomic<UInt>>.stride)
    return memory
  }

  deinit {
    for position in 0..<count { Self.unmanaged(addresses[position].load(ordering: .acquiring))?.release() }
    free(addresses)
  }

  /// The slot at a position; `nil` before it was made.
  subscript(position: Int) -> RecordSlot? {
    Self.unmanaged(addresses[position].load(ordering: .acquiring))?.takeUnretainedValue()
  }

  /// Sets the slot at a position unless there is one.
  /// - Returns: The slot that is there now, and whether this call has set it.
  func setIfNil(_ slot: RecordSlot, at position: Int) -> (slot: RecordSlot, isNew: Bool) {
    let new = Unmanaged.passRetained(slot)
    let (isExchanged, old) = addresses[position].compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return (slot, true) }
    new.release()
    return (first.takeUnretainedValue(), false)
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<RecordSlot>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
