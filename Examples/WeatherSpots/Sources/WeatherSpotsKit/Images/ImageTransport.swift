public import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What fetches the bytes of an image: URLSession in the app, a double in tests.
public protocol ImageTransport: Sendable {
  /// The body of the answer to a GET, if its status is 200.
  ///
  /// - Parameters:
  ///   - url: A URL of http or https.
  ///   - limit: The most bytes; as soon as there are more, no more is fetched.
  ///   - timeout: How long the whole answer may take.
  nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data
}

extension URLSessionTransport: ImageTransport {
  /// Fetches an image, following at most five redirections to http and https.
  public nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data {
    let answer = FirstAnswer()
    let body = LimitedBody(limit: limit, host: url.host() ?? "the server", answer)
    let task = session.dataTask(with: URLRequest(url: url))
    bodies.add(body, of: task)
    defer { bodies.remove(task) }
    let result = await run(task, answer, timedOut: .timedOut(host: body.host, after: timeout), after: timeout)
    if let error = body.error { throw error }
    switch result {
    case .success(let response) where response.status == 200: return response.body
    case .success(let response): throw .http(status: response.status)
    case .failure(.cancelled): throw .cancelled
    case .failure(let error): throw .transport(error)
    }
  }
}

/// A body that is gathered up to a limit.
private final class LimitedBody: Sendable {
  let host: String
  private let limit: Int
  private let answer: FirstAnswer
  private let state = Mutex(State())

  private struct State {
    var data = Data()
    var redirections = 0
    var error: ImageError?
  }

  init(limit: Int, host: String, _ answer: FirstAnswer) {
    self.limit = limit
    self.host = host
    self.answer = answer
  }

  /// Why no more was taken, if so.
  var error: ImageError? { state.withLock { $0.error } }

  /// Takes a piece; `false` when no more is wanted.
  func take(_ piece: Data, of response: URLResponse?) -> Bool {
    let status = (response as? HTTPURLResponse)?.statusCode ?? 200
    let error = state.withLock { state -> ImageError? in
      if status != 200 {
        state.error = .http(status: status)
      } else if piece.count > limit - state.data.count || (response?.expectedContentLength ?? 0) > Int64(limit) {
        state.error = .tooLarge(limit: limit)
      } else {
        state.data.append(piece)
      }
      return state.error
    }
    if error != nil { answer.give(.failure(.cancelled)) }
    return error == nil
  }

  /// Whether one more redirection is followed.
  func follows(_ url: URL?) -> Bool {
    state.withLock { state in
      state.redirections += 1
      return state.redirections <= 5 && ["http", "https"].contains(url?.scheme?.lowercased())
    }
  }

  func end(_ response: URLResponse?, _ error: (any Error)?) {
    // On Linux an answer that is cut off ends with an unknown error.
    let isCutOff = response != nil && (error as NSError?)?.code == NSURLErrorUnknown
    let error = isCutOff ? URLError(.networkConnectionLost) : error
    answer.give(URLSessionTransport.result(error == nil ? state.withLock { $0.data } : nil, response, error, host: host))
  }
}

/// The delegate of the session: hands each piece to the body that it belongs to.
final class SessionBodies: NSObject, URLSessionDataDelegate, Sendable {
  private let bodies = Mutex<[Int: LimitedBody]>([:])

  fileprivate func add(_ body: LimitedBody, of task: URLSessionTask) { bodies.withLock { $0[task.taskIdentifier] = body } }

  func remove(_ task: URLSessionTask) { _ = bodies.withLock { $0.removeValue(forKey: task.taskIdentifier) } }

  private func body(of task: URLSessionTask) -> LimitedBody? { bodies.withLock { $0[task.taskIdentifier] } }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let body = body(of: dataTask), !body.take(data, of: dataTask.response) else { return }
    dataTask.cancel()
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(body(of: task)?.follows(request.url) ?? true ? request : nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    body(of: task)?.end(task.response, error)
  }
}
