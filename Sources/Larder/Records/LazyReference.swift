internal import Synchronization

/// A reference that is set at most once and read without a lock.
///
/// This type replaces `AtomicLazyReference`. On Linux `AtomicLazyReference` is generic code that is not specialised for its use, and one
/// read took longer than the rest of a look-up.
struct LazyReference<Instance: AnyObject & Sendable>: ~Copyable, Sendable {
  /// Address of the object, which this reference owns, or 0 before an object was set.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { Self.unmanaged(address.load(ordering: .acquiring))?.release() }

  /// Whether an object was set.
  var isSet: Bool { address.load(ordering: .acquiring) != 0 }

  /// Returns the object, or `nil` before an object was set.
  func load() -> Instance? { unretained?.takeUnretainedValue() }

  /// The object without an increment of its reference count.
  ///
  /// The object lives as long as this reference.
  var unretained: Unmanaged<Instance>? { Self.unmanaged(address.load(ordering: .acquiring)) }

  /// Sets the object unless one was set before.
  ///
  /// - Returns: The object that this reference holds after the call.
  @discardableResult func storeIfNil(_ instance: Instance) -> Instance {
    let new = Unmanaged.passRetained(instance)
    // The releasing order also publishes the contents of the object to every thread that reads its address.
    let (isExchanged, old) = address.compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return instance }
    // Another thread has set an object first, so the reference count of the new object, which was raised above, is lowered again.
    new.release()
    return first.takeUnretainedValue()
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<Instance>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
