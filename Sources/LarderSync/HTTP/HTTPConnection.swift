internal import Foundation
internal import Larder

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// An answer of a server.
struct HTTPAnswer: Sendable {
  let status: Int
  let body: Data
  /// The seconds that the server asks to wait, in its header `Retry-After`.
  let retryAfter: Double?
}

/// The requests of one transport, through URLSession without cookies and without a cache.
///
/// Not `URLSession.data(for:)`: on Linux its cancellation can wait for the session's queue while it holds the lock of the Swift task, which
/// that queue wants, too, and then both wait for ever (seen with Swift 6.3.1); and `bytes(for:)` is missing there.
final class HTTPConnection: Sendable {
  private let calls = HTTPCalls()
  private let session: URLSession
  /// Runs what never waits: the ends of waiting times.
  private static let clock = DispatchQueue(label: "larder.sync.clock")
  /// Runs cancellations, which on Linux may wait for the session.
  private static let cancellations = DispatchQueue(label: "larder.sync.cancellations")

  init() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    // Each scope has a stream of events that stays open.
    configuration.httpMaximumConnectionsPerHost = 64
    session = URLSession(configuration: configuration, delegate: calls, delegateQueue: Self.queue)
  }

  deinit { session.invalidateAndCancel() }

  #if canImport(FoundationNetworking)
    private static var queue: OperationQueue? { InlineQueue() }
  #else
    private static var queue: OperationQueue? { nil }
  #endif

  /// Sends a request; returns once the answer is there.
  ///
  /// - Throws: `.unreachable` where there is none within the time, `.tooLarge` for one over the limit; `CancellationError`.
  func send(_ request: URLRequest, limit: Int, within time: Duration) async throws -> HTTPAnswer {
    var request = request
    // URLSession's own limit is for a pause between two packets; the one below is for the whole answer, and comes first.
    request.timeoutInterval = time / .seconds(1) + 60
    let answer = OneShot<Result<HTTPAnswer, any Error>>()
    let task = session.dataTask(with: request)
    calls.add(HTTPCall(limit: limit, end: { answer.resolve($0) }), of: task)
    defer { calls.remove(task) }
    Self.clock.asyncAfter(deadline: .now() + time / .seconds(1)) { [weak task] in
      if answer.resolve(.failure(SyncProblem.unreachable("no answer within \(time)"))), let task { Self.stop(task) }
    }
    task.resume()
    return try await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      // From elsewhere: what runs here may hold the lock of the task that waits.
      Self.clock.async { if answer.resolve(.failure(CancellationError())) { Self.stop(task) } }
    }.get()
  }

  /// Sends a request whose answer comes in pieces, until it ends, fails, or nothing comes for a time.
  func stream(_ request: URLRequest, silenceLimit: Duration) -> AsyncThrowingStream<Data, any Error> {
    var request = request
    request.timeoutInterval = silenceLimit / .seconds(1)
    let task = session.dataTask(with: request)
    return AsyncThrowingStream { continuation in
      let call = HTTPCall(limit: 1 << 16, piece: { continuation.yield($0) }) { result in
        // A status other than 200 ends the stream with its problem; an answer that ends is an end.
        switch result {
        case .success(let answer) where answer.status == 200: continuation.finish()
        case .success(let answer):
          continuation.finish(throwing: SyncProblem(status: answer.status, body: answer.body, retryAfter: answer.retryAfter))
        case .failure(let error): continuation.finish(throwing: error)
        }
      }
      calls.add(call, of: task)
      continuation.onTermination = { [calls] _ in
        calls.remove(task)
        Self.clock.async { Self.stop(task) }
      }
      Self.watch(call, task, silenceLimit)
      task.resume()
    }
  }

  /// Ends a stream on which nothing has come for a time, as on a connection whose other end is gone without a word.
  private static func watch(_ call: HTTPCall, _ task: URLSessionTask, _ limit: Duration) {
    let seen = call.pieceCount
    clock.asyncAfter(deadline: .now() + limit / .seconds(1)) { [weak call, weak task] in
      guard let call, let task else { return }
      if call.pieceCount != seen { return watch(call, task, limit) }
      call.fail(SyncProblem.unreachable("nothing came for \(limit)"))
      stop(task)
    }
  }

  static func stop(_ task: URLSessionTask) { cancellations.async { task.cancel() } }
}

#if canImport(FoundationNetworking)
  /// A queue that runs what it is given at once, on the thread that gives it.
  ///
  /// On Linux, URLSession reads on without waiting for its delegate: what came and was not looked at yet would pile up, whatever the limit.
  // The superclass is @unchecked Sendable, which must be said again; this class adds no state.
  private final class InlineQueue: OperationQueue, @unchecked Sendable {
    override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }

    override func addOperation(_ operation: Operation) { operation.start() }
  }
#endif
