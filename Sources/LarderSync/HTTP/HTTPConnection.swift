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
  #if canImport(FoundationNetworking)
    private let sockets: SocketPool
  #endif
  /// Runs what never waits: the ends of waiting times.
  static let clock = DispatchQueue(label: "larder.sync.clock")
  /// Runs cancellations, which on Linux may wait for the session.
  private static let cancellations = DispatchQueue(label: "larder.sync.cancellations")

  /// - Parameter idleTime: How long a connection over plain http waits for its next request on Linux. Most servers give it longer. Where
  ///   one does not, the request is sent again.
  init(idleTime: Duration = .seconds(4)) {
    #if canImport(FoundationNetworking)
      sockets = SocketPool(idleTime: idleTime)
    #endif
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
  /// - Throws: `.unreachable` where there is no answer within the time, which begins again with each 64 KiB that have gone or come;
  ///   `.answerTooLarge` for one over the limit; `CancellationError`.
  func send(_ request: URLRequest, limit: Int, within time: Duration) async throws -> HTTPAnswer {
    var request = request
    // URLSession's own limit is for a pause between two packets; the one below is shorter.
    request.timeoutInterval = time / .seconds(1) + 60
    let answer = OneShot<Result<HTTPAnswer, any Error>>()
    let call = HTTPCall(limit: limit, end: { answer.resolve($0) })
    let stop = begin(request, call, isReusable: true)
    Self.watch(call, time, stop, "no answer within \(time)") { call, seen in call.passed >= seen + Self.piece ? call.passed : nil }
    return try await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      // From elsewhere: what runs here may hold the lock of the task that waits.
      Self.clock.async { if answer.resolve(.failure(CancellationError())) { stop() } }
    }.get()
  }

  /// The bytes that must pass in the time for an answer, unless it is there by then: a slow line is given that time again, a byte a second
  /// is not.
  private static let piece = 64 << 10

  /// Sends a request whose answer comes in pieces, until it ends, fails, or nothing comes for a time.
  func stream(_ request: URLRequest, firstLimit: Duration, silenceLimit: Duration) -> AsyncThrowingStream<Data, any Error> {
    var request = request
    request.timeoutInterval = silenceLimit / .seconds(1) + 60
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
      let stop = begin(request, call, isReusable: false)
      continuation.onTermination = { _ in Self.clock.async { stop() } }
      Self.watch(call, silenceLimit, first: firstLimit, stop, "nothing came in time") { $0.received > $1 ? $0.received : nil }
    }
  }

  /// Begins a request.
  ///
  /// - Parameter isReusable: Whether it may use the connection of an earlier request, and leave it to a later one.
  /// - Returns: What ends it, and waits for nothing.
  private func begin(_ request: URLRequest, _ call: HTTPCall, isReusable: Bool) -> @Sendable () -> Void {
    #if canImport(FoundationNetworking)
      if request.url?.scheme?.lowercased() == "http" {
        let request = SocketRequest(request, call, isReusable ? sockets : nil)
        request.start()
        return { [weak request] in request?.cancel() }
      }
    #endif
    let task = session.dataTask(with: request)
    calls.add(call, of: task)
    task.resume()
    // Weak, or what has come would stay until its time was up.
    return { [weak task] in if let task { Self.stop(task) } }
  }

  /// Ends a request that makes no progress within a time, as on a connection whose other end is gone without a word.
  ///
  /// - Parameters:
  ///   - first: The time for the first progress, where that is another.
  ///   - progress: Returns how far the request has come, if that is far enough from where it was.
  private static func watch(
    _ call: HTTPCall, from seen: Int = 0, _ limit: Duration, first: Duration? = nil, _ stop: @escaping @Sendable () -> Void,
    _ words: String, _ progress: @escaping @Sendable (HTTPCall, Int) -> Int?
  ) {
    // Weak, or what has come would stay until its time was up.
    clock.asyncAfter(deadline: .now() + (first ?? limit) / .seconds(1)) { [weak call] in
      guard let call else { return }
      if let next = progress(call, seen) { return watch(call, from: next, limit, stop, words, progress) }
      call.fail(SyncProblem.unreachable(words))
      stop()
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
