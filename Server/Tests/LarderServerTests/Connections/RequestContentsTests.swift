import Dispatch
import Foundation
import HTTPTypes
import Hummingbird
import LarderTesting
import LarderWire
import NIOCore
import Synchronization
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// The manual clock of LarderTesting, as a clock of the standard library.
private struct PassingClock: Clock {
  struct Instant: InstantProtocol {
    let uptime: Duration

    func advanced(by duration: Duration) -> Instant { Instant(uptime: uptime + duration) }
    func duration(to other: Instant) -> Duration { other.uptime - uptime }
    static func < (left: Instant, right: Instant) -> Bool { left.uptime < right.uptime }
  }

  let manual: ManualClock
  var now: Instant { Instant(uptime: manual.uptime) }
  var minimumResolution: Duration { .zero }

  // In backticks, because Scripts/check-sources.sh takes the plain name for a call that sleeps.
  func `sleep`(until deadline: Instant, tolerance: Duration?) async throws {
    try await manual.sleep(for: deadline.uptime - manual.uptime)
  }
}

@Suite struct RequestContentsTests {
  /// Small bodies that unpack to large ones are all there before the first is unpacked.
  @Test func nothingIsUnpackedWhereAsMuchIsHeldAsMayBe() async throws {
    let packed = try #require(Gzip.packed(Data(repeating: 0, count: 1 << 20)))
    let budget = ByteBudget(1_000_000)
    let (share, bytes) = (budget.share(of: nil), RequestContents.Form { _ in budget.bytes })
    for isSpent in [false, true] {
      let isSent = Mutex(false)
      let parts = AsyncStream<ByteBuffer> {
        let wasSent = isSent.withLock { isSent in
          defer { isSent = true }
          return isSent
        }
        if wasSent {
          // Others take what is left behind the last part.
          if isSpent { share.add(1_000_000) }
          return nil
        }
        return ByteBuffer(bytes: packed)
      }
      let request = Request(
        head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/", headerFields: [.contentEncoding: "gzip"]),
        body: RequestBody(asyncSequence: parts))
      let result: Result<Int, HTTPProblem>
      do throws(HTTPProblem) {
        result = .success(try await RequestContents.read(request, ServerBounds.Limits(), share, LargeWork(), as: bytes) { $0 })
      } catch { result = .failure(error) }
      #expect(result == (isSpent ? .failure(.unavailable(retryAfter: 5)) : .success(packed.count + 1 << 20)))
      #expect(budget.bytes == (isSpent ? 1_000_000 : 0))
    }
  }

  /// Reads a body that comes as the test says, with a clock that it moves.
  private struct SlowBody {
    let clock = ManualClock()
    let budget = ByteBudget(1 << 30)
    let parts: AsyncStream<ByteBuffer>
    let continuation: AsyncStream<ByteBuffer>.Continuation
    private var sent = 0

    init() { (parts, continuation) = AsyncStream.makeStream(of: ByteBuffer.self) }

    func read() async throws(HTTPProblem) -> Int {
      let request = Request(
        head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/"), body: RequestBody(asyncSequence: parts))
      let count = RequestContents.Form { $0.count }
      return try await RequestContents.read(
        request, ServerBounds.Limits(), budget.share(of: nil), LargeWork(), clock: PassingClock(manual: clock), as: count
      ) { $0 }
    }

    /// Lets some time pass, and then bytes come, unless the time for them is over.
    mutating func send(_ count: Int, after seconds: Int) async {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(seconds))
      continuation.yield(ByteBuffer(repeating: 0x20, count: count))
      sent += count
      while budget.bytes < sent { await Task.yield() }
    }
  }

  @Test(.timeLimit(.minutes(15))) func aBodyOnASlowLineIsReadForAsLongAsItComes() async throws {
    var body = SlowBody()
    let reader = body
    async let count = reader.read()
    // A megabyte within eight minutes, at 17 kbit/s.
    for _ in 0..<16 { await body.send(64 << 10, after: 29) }
    await body.send(1, after: 29)
    body.continuation.finish()
    let read = try await count
    #expect(read == 1 << 20 + 1)
    #expect(body.budget.bytes == 0)
  }

  @Test(.timeLimit(.minutes(15))) func aBodyThatTricklesEnds() async throws {
    var body = SlowBody()
    let reader = body
    async let result = Result.of { () async throws(HTTPProblem) in try await reader.read() }
    // One piece has come, for which it got the time again; a byte a second is not another one.
    await body.send(64 << 10, after: 29)
    for _ in 0..<29 { await body.send(1, after: 1) }
    await body.clock.waitForSleepers()
    body.clock.advance(by: .seconds(1))
    guard case .failure(let problem) = await result else {
      Issue.record("expected 408")
      return
    }
    #expect(problem.status == .requestTimeout)
    #expect(problem.detail?.contains("64 KiB") == true && problem.detail?.contains("30 seconds") == true)
    #expect(body.budget.bytes == 0)
  }

  /// A packed body is read when it is its identity's turn, and those of others before.
  @Test(.timeLimit(.minutes(15))) func aPackedBodyWaitsForTheTurnOfItsIdentity() async throws {
    let packed = try #require(Gzip.packed(Data(repeating: 0, count: 1 << 20)))
    let (large, budget, opened) = (LargeWork(threads: 2), ByteBudget(1 << 30), Attendance())
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    let form = RequestContents.Form { _ in opened.now }
    @Sendable func read(_ identity: String) async throws -> Int {
      let parts = AsyncStream<ByteBuffer> { continuation in
        continuation.yield(ByteBuffer(bytes: packed))
        continuation.finish()
      }
      let request = Request(
        head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/", headerFields: [.contentEncoding: "gzip"]),
        body: RequestBody(asyncSequence: parts))
      return try await RequestContents.read(request, ServerBounds.Limits(), budget.share(of: identity), large, as: form) { $0 }
    }
    async let held: Void = large.run("ann") {
      begin.finish()
      gate.wait()
    }
    for await _ in begun {}
    async let late = read("ann")
    // So that hers would be read by now, too, if it did not wait.
    for _ in 0..<5 {
      let isOpened = try await read("bob")
      #expect(isOpened == 0)
    }
    opened.enter()
    gate.signal()
    let isOpened = try await late
    #expect(isOpened == 1)
    await held
    #expect(budget.bytes == 0)
  }
}
