internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import NIOCore

/// The body of a request, within the limits.
enum RequestContents {
  /// Reads the body, unpacks it where it is in gzip, and hands it to its user, while its bytes count as held.
  ///
  /// - Throws: `.tooLarge`, `.refused` with 408 for a body that comes too slowly, 415 for a form that is not known, `.unavailable` where as
  ///   much is held for others as may be; what the user throws.
  static func read<Value>(
    _ request: Request, _ options: ServerOptions, _ budget: ByteBudget, _ use: (Data) async throws(SyncProblem) -> Value
  ) async throws(SyncProblem) -> Value {
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > options.bodyBytes { throw .tooLarge }
    let isPacked: Bool
    switch request.headers[.contentEncoding]?.lowercased() {
    case nil, "identity": isPacked = false
    case "gzip", "x-gzip": isPacked = true
    default: throw .refused(status: 415, detail: "Expected a body in gzip, or without encoding.")
    }
    let sent = try await collect(request.body, limit: options.bodyBytes, seconds: options.bodySeconds, budget)
    defer { budget.add(-sent.count) }
    guard isPacked else { return try await use(sent) }
    // What others hold by now; of bodies that are unpacked at one time there are as many as threads.
    if budget.isSpent { throw .unavailable(retryAfter: 5) }
    let unpacked = try Gzip.unpacked(sent, limit: options.bodyBytes)
    budget.add(unpacked.count)
    defer { budget.add(-unpacked.count) }
    return try await use(unpacked)
  }

  /// Returns the bytes of a body, which count as held then.
  private static func collect(
    _ body: RequestBody, limit: Int, seconds: Int, _ budget: ByteBudget
  ) async throws(SyncProblem) -> Data {
    let result = await withTaskGroup(of: Result<Data, SyncProblem>?.self) { group in
      group.addTask {
        var data = Data()
        var problem: SyncProblem?
        do {
          for try await part in body {
            if data.count + part.readableBytes > limit { problem = .tooLarge }
            if budget.isSpent { problem = .unavailable(retryAfter: 5) }
            if problem != nil { break }
            budget.add(part.readableBytes)
            data.append(contentsOf: part.readableBytesView)
          }
        } catch { problem = .malformed("the body ended early") }
        // Of a body that came too late nobody takes what has come.
        if problem == nil, Task.isCancelled { problem = .unavailable(retryAfter: nil) }
        guard let problem else { return .success(data) }
        budget.add(-data.count)
        return .failure(problem)
      }
      group.addTask {
        do { try await Task.sleep(for: .seconds(seconds)) } catch { return nil }
        return .failure(.refused(status: 408, detail: "Expected the body within \(seconds) seconds."))
      }
      var answer: Result<Data, SyncProblem>?
      for await result in group {
        if answer == nil, let result {
          answer = result
          group.cancelAll()
        } else if case .success(let late) = result {
          // It was complete when its time was over already.
          budget.add(-late.count)
        }
      }
      return answer
    }
    guard let result else { throw .unavailable(retryAfter: nil) }
    return try result.get()
  }
}
