internal import Synchronization

/// A reference that is set at most once and read without a lock.
///
/// `LazyReference` replaces `AtomicLazyReference` of the standard library. On Linux `AtomicLazyReference` is generic code that is not
/// specialised for its use, and one read of it took longer than the rest of a record's look-up.
struct LazyReference<Instance: AnyObject & Sendable>: ~Copyable, Sendable {
  /// Address of the object, which the `LazyReference` owns, or 0 before an object was set.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { Self.unmanaged(address.load(ordering: .acquiring))?.release() }

  /// Whether the reference holds an object.
  var isSet: Bool { address.load(ordering: .acquiring) != 0 }

  /// Returns the object, or `nil` before an object was set.
  func load() -> Instance? { unretained?.takeUnretainedValue() }

  /// The object without an increment of its reference count, or `nil` before an object was set.
  ///
  /// The object lives as long as the `LazyReference`.
  var unretained: Unmanaged<Instance>? { Self.unmanaged(address.load(ordering: .acquiring)) }

  /// Sets the object unless an object was set before.
  ///
  /// - Returns: The object that was set first: `instance`, or an object that was set before the call.
  @discardableResult func storeIfNil(_ instance: Instance) -> Instance {
    let new = Unmanaged.passRetained(instance)
    // The releasing order also publishes the contents of the object to every thread that reads its address.
    let (isExchanged, old) = address.compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return instance }
    // Another thread has set an object first, so the reference that was retained to the new object is released again.
    new.release()
    return first.takeUnretainedValue()
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<Instance>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
