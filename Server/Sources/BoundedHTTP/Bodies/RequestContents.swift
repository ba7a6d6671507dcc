// Bodies/ reads request bodies within their limits, and runs the decoding of large bodies on threads of its own, fairly among identities.
// Invariant: no identity can occupy the memory or the threads that all others need.
// Called by ServerBounds and LarderServer.

package import Foundation
internal import HTTPTypes
package import Hummingbird
internal import NIOCore

/// Reader of request bodies within the limits on size, time and memory.
package enum RequestContents {
  /// Decoder from the bytes of a body to its contents, in a type of its own because closures cannot be compared.
  package struct Form<Contents: Sendable>: Sendable {
    let contents: @Sendable (Data) throws(HTTPProblem) -> Contents

    package init(_ contents: @escaping @Sendable (Data) throws(HTTPProblem) -> Contents) { self.contents = contents }
  }

  /// Reads the body, decompresses it if it is gzip, and passes its decoded contents to `use`.
  ///
  /// The bytes of the body count as held until `use` returns.
  ///
  /// - Throws: `.tooLarge`, `.refused` with 408 for a body that arrives too slowly and with 415 for an unknown encoding, `.unavailable`
  ///   when this identity or all together hold as many bytes as allowed, `.malformed` for a body that ends early, and the errors of `form`
  ///   and `use`.
  package static func read<Contents: Sendable, Value>(
    _ request: Request, _ limits: ServerBounds.Limits, _ share: ByteShare, _ large: LargeWork,
    clock: some Clock<Duration> = ContinuousClock(), as form: Form<Contents>, _ use: (Contents) async throws(HTTPProblem) -> Value
  ) async throws(HTTPProblem) -> Value {
    // Refused before the body is read, so that a client with `Expect: 100-continue` does not send it.
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limits.bodyBytes { throw .tooLarge }
    let isPacked: Bool
    switch request.headers[.contentEncoding]?.lowercased() {
    case nil, "identity": isPacked = false
    case "gzip", "x-gzip": isPacked = true
    default: throw .refused(.unsupportedMediaType, "Expected a body in gzip, or without encoding.")
    }
    let sent = try await collect(request.body, limit: limits.bodyBytes, seconds: limits.bodySeconds, share, clock)
    // From here on this function owns the bytes that `collect` has counted.
    defer { share.add(-sent.count) }
    // A compressed body is always decoded on a thread: the size that it announces may be wrong.
    guard isPacked || sent.count > LargeWork.mostInPlace else { return try await use(try form.contents(sent)) }
    let limit = limits.bodyBytes
    let result = await large.run(share.identity) {
      Self.contents(of: sent, isPacked: isPacked, limit: limit, share, form)
    }
    let (contents, count) = try result.get()
    defer { share.add(-count) }
    return try await use(contents)
  }

  /// Returns the decoded contents of a body, and the number of decompressed bytes, which count as held.
  private static func contents<Contents: Sendable>(
    of sent: Data, isPacked: Bool, limit: Int, _ share: ByteShare, _ form: Form<Contents>
  ) -> Result<(contents: Contents, unpacked: Int), HTTPProblem> {
    do throws(HTTPProblem) {
      guard isPacked else { return .success((try form.contents(sent), 0)) }
      // Others may have used up the budget since the body was read. At most one body for each thread passes this check at once.
      if share.isSpent { throw .unavailable(retryAfter: 5) }
      let unpacked = try Gzip.unpacked(sent, limit: limit)
      share.add(unpacked.count)
      do throws(HTTPProblem) { return .success((try form.contents(unpacked), unpacked.count)) } catch {
        // The caller learns the count only from a success, so a failure gives the bytes back here.
        share.add(-unpacked.count)
        throw error
      }
    } catch { return .failure(error) }
  }

  /// Returns the bytes of a body, which count as held from then on.
  private static func collect(
    _ body: RequestBody, limit: Int, seconds: Int, _ share: ByteShare, _ clock: some Clock<Duration>
  ) async throws(HTTPProblem) -> Data {
    let time = BodyTime(seconds: seconds, clock: clock)
    let result = await withTaskGroup(of: Result<Data, HTTPProblem>?.self) { group in
      group.addTask {
        var data = Data()
        var problem: HTTPProblem?
        do {
          for try await part in body {
            // The limit for chunked bodies, which announce no length.
            if data.count + part.readableBytes > limit { problem = .tooLarge }
            if share.isSpent { problem = .unavailable(retryAfter: 5) }
            if problem != nil { break }
            time.note(part.readableBytes)
            share.add(part.readableBytes)
            data.append(contentsOf: part.readableBytesView)
          }
        } catch { problem = .malformed("the body ended early") }
        // The deadline has passed and no caller takes the data, so its bytes are given back below.
        if problem == nil, Task.isCancelled { problem = .unavailable() }
        guard let problem else { return .success(data) }
        share.add(-data.count)
        return .failure(problem)
      }
      group.addTask {
        do { try await time.pass() } catch { return nil }
        let expected = "Expected \(ConnectionGuard.piece >> 10) KiB of the body, or what is left of it, every \(seconds) seconds."
        return .failure(.refused(.requestTimeout, expected))
      }
      var answer: Result<Data, HTTPProblem>?
      for await result in group {
        if answer == nil, let result {
          answer = result
          group.cancelAll()
        } else if case .success(let late) = result {
          // The body was complete just after its deadline. No caller takes it, so its bytes are given back.
          share.add(-late.count)
        }
      }
      return answer
    }
    guard let result else { throw .unavailable() }
    return try result.get()
  }
}
