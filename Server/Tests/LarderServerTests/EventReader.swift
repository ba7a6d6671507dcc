import Foundation

@testable import LarderServer

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A reader of server-sent events: its lines as they come.
final class EventReader: NSObject, URLSessionDataDelegate {
  let lines: AsyncStream<String>
  private let continuation: AsyncStream<String>.Continuation

  override init() { (lines, continuation) = AsyncStream.makeStream(of: String.self) }

  /// Opens a stream, and returns its lines; the task ends it.
  static func open(_ url: String, token: String, lastEventID: Int? = nil) throws -> (lines: AsyncStream<String>, task: URLSessionTask) {
    guard let url = URL(string: url) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    if let lastEventID { request.setValue("\(lastEventID)", forHTTPHeaderField: "Last-Event-ID") }
    let reader = EventReader()
    let session = URLSession(configuration: .ephemeral, delegate: reader, delegateQueue: nil)
    let task = session.dataTask(with: request)
    task.resume()
    session.finishTasksAndInvalidate()
    return (reader.lines, task)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    for line in String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: true) {
      continuation.yield(String(line))
    }
  }
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { continuation.finish() }
}

/// The lines of a stream without its comments.
struct EventFields {
  var iterator: AsyncStream<String>.AsyncIterator

  mutating func next() async -> String? {
    while let line = await iterator.next(isolation: #isolation) { if line != ":" { return line } }
    return nil
  }
}
