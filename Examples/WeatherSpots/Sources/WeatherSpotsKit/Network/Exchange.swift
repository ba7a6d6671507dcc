import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A request under way, and as much of its answer as is wanted.
final class Exchange: Sendable {
  let answer = FirstAnswer<Result<TransportResponse, TransportError>>()
  private let host: String
  private let redirections: Int
  private let bodyLimit: @Sendable (Int) -> Int?
  private let state = Mutex(State())

  private struct State {
    var body = Data()
    var isTooLarge = false
    var isStopped = false
    var redirections = 0
  }

  init(host: String, redirections: Int, _ bodyLimit: @escaping @Sendable (_ status: Int) -> Int?) {
    self.host = host
    self.redirections = redirections
    self.bodyLimit = bodyLimit
  }

  /// Returns whether one more redirection is followed.
  fileprivate func follows(_ url: URL?) -> Bool {
    state.withLock { state in
      state.redirections += 1
      return state.redirections <= redirections && ["http", "https"].contains(url?.scheme?.lowercased())
    }
  }

  /// Takes the head of an answer and a piece of its body; `false` when no more is wanted.
  fileprivate func take(_ piece: Data, of response: URLResponse?) -> Bool {
    let status = (response as? HTTPURLResponse)?.statusCode ?? 200
    guard let limit = bodyLimit(status) else {
      if let response { end(response, nil) }
      return response == nil
    }
    let isTooLarge = state.withLock { state in
      let isTooLarge =
        state.isTooLarge || piece.count > limit - state.body.count || (response?.expectedContentLength ?? 0) > Int64(limit)
      if isTooLarge { state.body = Data() } else { state.body.append(piece) }
      state.isTooLarge = isTooLarge
      return isTooLarge
    }
    if isTooLarge { answer.give(.failure(.tooLarge(host: host, limit: limit))) }
    return !isTooLarge
  }

  /// Returns whether this is the first call: after the first piece that is not wanted a hundred more may come, and one stop is enough.
  fileprivate func isFirstToStop() -> Bool {
    state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
  }

  fileprivate func end(_ response: URLResponse?, _ error: (any Error)?) {
    guard error == nil, let response = response as? HTTPURLResponse else {
      let code = (error as NSError?)?.code ?? NSURLErrorBadServerResponse
      // On Linux an answer that is cut off ends with an unknown error.
      let isCutOff = response != nil && code == NSURLErrorUnknown
      return answer.give(.failure(.unreachable(host: host, code: isCutOff ? NSURLErrorNetworkConnectionLost : code)))
    }
    let isRecorded = response.value(forHTTPHeaderField: "X-Weather-Recorded") != nil
    let retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap { RetryAfter.wait($0, at: Date()) }
    let body = state.withLock { $0.body }
    answer.give(.success(TransportResponse(status: response.statusCode, body: body, isRecorded: isRecorded, retryAfter: retryAfter)))
  }
}

/// The delegate of a session: tells each exchange what comes of it.
final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  private let exchanges = Mutex<[Int: Exchange]>([:])

  func add(_ exchange: Exchange, of task: URLSessionTask) { exchanges.withLock { $0[task.taskIdentifier] = exchange } }

  func remove(_ task: URLSessionTask) { _ = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) } }

  private func exchange(of task: URLSessionTask) -> Exchange? { exchanges.withLock { $0[task.taskIdentifier] } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(exchange(of: task)?.follows(request.url) == true ? request : nil)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    completionHandler(.allow)
    take(Data(), of: dataTask, response, session)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    take(data, of: dataTask, dataTask.response, session)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    exchange(of: task)?.end(task.response, error)
  }

  private func take(_ piece: Data, of task: URLSessionDataTask, _ response: URLResponse?, _ session: URLSession) {
    guard let exchange = exchange(of: task), !exchange.take(piece, of: response), exchange.isFirstToStop() else { return }
    session.stop(task)
  }
}

/// The first of several answers that race for one waiter; later ones are dropped.
final class FirstAnswer<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
  }
  private let state = Mutex(State.open)

  func give(_ value: Value) {
    let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
      defer { if case .given = state {} else { state = .given(value) } }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiter?.resume(returning: value)
  }

  func result() async -> Value {
    await withCheckedContinuation { continuation in
      let value: Value? = state.withLock { state in
        if case .given(let value) = state { return value }
        state = .waiting(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
