internal import Foundation
internal import Synchronization

/// The decoded values of an array of slots by position, as far as they were looked up: a look-up reads them past the slot.
///
/// Unchecked, since the compiler does not see that the memory holds atomics only, which are never moved.
final class ValueTable: @unchecked Sendable {
  /// The addresses of the values, which their slots own; 0 where none is known.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>?

  /// Makes an empty table; memory is taken as positions are set.
  init(count: Int) {
    // Zero bytes are atomics of zero, and the system gives pages of them when they are touched; without memory there is no table.
    addresses = calloc(count, MemoryLayout<Atomic<UInt>>.stride)?.bindMemory(to: Atomic<UInt>.self, capacity: count)
  }

  deinit { free(addresses) }

  /// Returns the value at a position, if it is known.
  func value(at position: Int) -> Unmanaged<any DecodedRecord>? {
    guard let addresses else { return nil }
    return UnsafeRawPointer(bitPattern: addresses[position].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
  }

  /// Sets the value at a position, which its slot keeps as long as this is used.
  func set(_ value: Unmanaged<any DecodedRecord>, at position: Int) {
    addresses?[position].store(UInt(bitPattern: value.toOpaque()), ordering: .releasing)
  }
}
