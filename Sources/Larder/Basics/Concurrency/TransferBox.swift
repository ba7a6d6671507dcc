internal import Synchronization

/// A box from which one thread can take the value, even while other threads have references to the box.
///
/// The thread that takes the value can change it without a copy-on-write copy, or free it on a thread that no commit waits for. Copying or
/// freeing the changes of a million records takes longer than a commit may wait.
final class TransferBox<Value: Sendable>: Sendable {
  private let contents: Mutex<Value?>

  init(_ value: Value) { contents = Mutex(value) }

  /// Value in the box, or `nil` after ``take()``.
  var value: Value? { contents.withLock { $0 } }

  /// Takes the value out of the box, which is empty afterwards.
  ///
  /// If the caller does not use the result, this call frees the value.
  @discardableResult func take() -> Value? { contents.withLock { $0.take() } }
}
