package import Foundation
internal import HTTPTypes
package import Hummingbird
package import Larder
package import LarderSync
internal import NIOCore

/// The body of a request, within the limits.
package enum RequestContents {
  /// A way from the bytes of a body to what they say; in a type of its own, since closures are compared by nobody.
  package struct Form<Contents: Sendable>: Sendable {
    let contents: @Sendable (Data) throws(SyncProblem) -> Contents

    package init(_ contents: @escaping @Sendable (Data) throws(SyncProblem) -> Contents) { self.contents = contents }
  }

  /// Reads the body, which is unpacked where it is in gzip, and hands what it says to its user, while its bytes count as held.
  ///
  /// - Throws: `.tooLarge`, `.refused` with 408 for a body that comes too slowly, 415 for a form that is not known, `.unavailable` where as
  ///   much is held for this identity, or for all, as may be; what the form and the user throw.
  package static func read<Contents: Sendable, Value>(
    _ request: Request, _ limits: ServerBounds.Limits, _ share: ByteShare, _ large: LargeWork, clock: any WallClock = SystemClock(),
    as form: Form<Contents>, _ use: (Contents) async throws(SyncProblem) -> Value
  ) async throws(SyncProblem) -> Value {
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limits.bodyBytes { throw .tooLarge }
    let isPacked: Bool
    switch request.headers[.contentEncoding]?.lowercased() {
    case nil, "identity": isPacked = false
    case "gzip", "x-gzip": isPacked = true
    default: throw .refused(status: 415, detail: "Expected a body in gzip, or without encoding.")
    }
    let sent = try await collect(request.body, limit: limits.bodyBytes, seconds: limits.bodySeconds, share, clock)
    defer { share.add(-sent.count) }
    // What a packed body says of its size may be wrong.
    guard isPacked || sent.count > LargeWork.mostInPlace else { return try await use(try form.contents(sent)) }
    let limit = limits.bodyBytes
    let result = await large.run(share.identity) {
      Self.contents(of: sent, isPacked: isPacked, limit: limit, share, form)
    }
    let (contents, count) = try result.get()
    defer { share.add(-count) }
    return try await use(contents)
  }

  /// Returns what a body says, and the bytes that it was unpacked to, which count as held.
  private static func contents<Contents: Sendable>(
    of sent: Data, isPacked: Bool, limit: Int, _ share: ByteShare, _ form: Form<Contents>
  ) -> Result<(contents: Contents, unpacked: Int), SyncProblem> {
    do throws(SyncProblem) {
      guard isPacked else { return .success((try form.contents(sent), 0)) }
      // What others hold by now; of bodies that are unpacked at one time there are as many as threads.
      if share.isSpent { throw .unavailable(retryAfter: 5) }
      let unpacked = try Gzip.unpacked(sent, limit: limit)
      share.add(unpacked.count)
      do throws(SyncProblem) { return .success((try form.contents(unpacked), unpacked.count)) } catch {
        share.add(-unpacked.count)
        throw error
      }
    } catch { return .failure(error) }
  }

  /// Returns the bytes of a body, which count as held then.
  private static func collect(
    _ body: RequestBody, limit: Int, seconds: Int, _ share: ByteShare, _ clock: any WallClock
  ) async throws(SyncProblem) -> Data {
    let time = BodyTime(seconds: seconds, clock: clock)
    let result = await withTaskGroup(of: Result<Data, SyncProblem>?.self) { group in
      group.addTask {
        var data = Data()
        var problem: SyncProblem?
        do {
          for try await part in body {
            if data.count + part.readableBytes > limit { problem = .tooLarge }
            if share.isSpent { problem = .unavailable(retryAfter: 5) }
            if problem != nil { break }
            time.note(part.readableBytes)
            share.add(part.readableBytes)
            data.append(contentsOf: part.readableBytesView)
          }
        } catch { problem = .malformed("the body ended early") }
        // Of a body that came too late nobody takes what has come.
        if problem == nil, Task.isCancelled { problem = .unavailable(retryAfter: nil) }
        guard let problem else { return .success(data) }
        share.add(-data.count)
        return .failure(problem)
      }
      group.addTask {
        do { try await time.pass() } catch { return nil }
        let expected = "Expected \(BodyTime.piece >> 10) KiB of the body, or what is left of it, every \(seconds) seconds."
        return .failure(.refused(status: 408, detail: expected))
      }
      var answer: Result<Data, SyncProblem>?
      for await result in group {
        if answer == nil, let result {
          answer = result
          group.cancelAll()
        } else if case .success(let late) = result {
          // It was complete when its time was over already.
          share.add(-late.count)
        }
      }
      return answer
    }
    guard let result else { throw .unavailable(retryAfter: nil) }
    return try result.get()
  }
}
