import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// Not the global queues, which have few threads. What runs on the first never waits, or a flood in one session would go on while the
// second waits for another: on Linux all sessions of a process share a thread.
private let clock = DispatchQueue(label: "weather-spots.requests.clock")
private let cancellations = DispatchQueue(label: "weather-spots.requests.cancellations")

extension URLSession {
  /// Cancels a task; waits for nothing, so it may be called on the session's own thread.
  ///
  /// On Linux, as long as more of a body is there than libcurl takes in one turn (at most a hundred pieces of 16 KiB), the session reads on
  /// and comes to nothing else: `cancel()` waits, for ever if the sender is fast (seen with Swift 6.3.1). So first its reading is stopped.
  func stop(_ task: URLSessionTask) {
    let reading = readingQueue
    reading?.suspend()
    cancellations.async {
      task.cancel()
      reading?.resume()
    }
  }

  /// The queue on which libcurl reads; `nil` where there is none, and where another Foundation keeps it elsewhere: then `cancel()` waits.
  var readingQueue: DispatchQueue? {
    #if canImport(FoundationNetworking)
      // Foundation does not show it. Both properties on the way are constants of the session.
      guard let curl = Mirror(reflecting: self).children.first(where: { $0.label == "multiHandle" }) else { return nil }
      return Mirror(reflecting: curl.value).children.first { $0.label == "queue" }?.value as? DispatchQueue
    #else
      return nil
    #endif
  }

  /// Calls a function after a time, on a thread that is always there; it must not wait for anything.
  static func later(_ time: Duration, _ body: @escaping @Sendable () -> Void) {
    clock.asyncAfter(deadline: .now() + time / .seconds(1), execute: body)
  }
}
