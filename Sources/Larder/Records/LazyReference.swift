internal import Synchronization

/// A reference that is set at most once and read without a lock.
///
/// It replaces `AtomicLazyReference`, which on Linux is generic code that is not compiled for its use: a read took longer there than the
/// rest of a look-up.
struct LazyReference<Instance: AnyObject & Sendable>: ~Copyable, Sendable {
  /// Address of the object, which this reference owns, or 0 while there is none.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { Self.unmanaged(address.load(ordering: .acquiring))?.release() }

  /// Whether there is an object.
  var isSet: Bool { address.load(ordering: .acquiring) != 0 }

  /// Returns the object, or `nil` while there is none.
  func load() -> Instance? { unretained?.takeUnretainedValue() }

  /// The object without a reference count, which lives as long as this reference.
  var unretained: Unmanaged<Instance>? { Self.unmanaged(address.load(ordering: .acquiring)) }

  /// Sets the object unless there is one.
  /// - Returns: The object that is there now.
  @discardableResult func storeIfNil(_ instance: Instance) -> Instance {
    let new = Unmanaged.passRetained(instance)
    // The exchange also publishes the contents of the object to readers of the address.
    let (isExchanged, old) = address.compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return instance }
    // Another thread was first, so nothing owns the new object here.
    new.release()
    return first.takeUnretainedValue()
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<Instance>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
