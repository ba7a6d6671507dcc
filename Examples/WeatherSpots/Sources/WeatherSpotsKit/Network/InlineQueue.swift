import Foundation

/// A queue that runs what it is given at once, on the thread that gives it.
///
/// On Linux, URLSession reads on without waiting for its delegate: with a queue of its own, what came and was not looked at yet piled up
/// to two gigabytes before a body of more than eight megabytes was given up (seen with Swift 6.3.1). Here each piece is looked at before
/// the next one is read. So nothing that runs here may wait for the session, as cancelling a task does.
// The superclass is @unchecked Sendable, which must be said again; this class adds no state.
final class InlineQueue: OperationQueue, @unchecked Sendable {
  override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }

  override func addOperation(_ operation: Operation) { operation.start() }
}
