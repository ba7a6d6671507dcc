import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A proxy between devices and a server that cuts, stalls, delays and repeats what passes through it.
final class ChaosProxy: Sendable {
  /// What happens to the bytes that pass from now on.
  struct Rules: Sendable {
    /// The number of bytes, of both directions together, after which connections are cut.
    var cut = Int.max
    /// The number of bytes after which nothing passes any more, and nobody is told.
    var stall = Int.max
    /// The time for which each piece is held back.
    var delay = 0.0
    /// Whether each request is sent once more on another connection: before the next one of its own connection, or when that ends.
    var repeats = false
    /// Whether a connection ends where the answer to its second request should begin.
    var losesSecondAnswers = false
    /// A part of the addresses that nobody gets through to, on a connection of their own or behind other requests.
    var blocked: String?
    /// A part of the addresses whose requests get through, and nothing of their answers; the connections stay open.
    var swallowed: String?
  }

  private struct State: Sendable {
    var rules = Rules()
    var passed = 0
    var blockedCount = 0
    var lostCount = 0
    var repeatCount = 0
  }

  /// The answers of one connection: its newest request says whether they get through.
  private final class Answers: Sendable {
    let areSwallowed = Mutex(false)
    let requestCount = Mutex(0)
  }

  private let relay: LoopbackRelay
  private let state = Mutex(State())

  init(to target: Int) throws {
    relay = try LoopbackRelay(to: target)
    relay.start { [self] client, server in serve(client, server) }
  }

  var port: Int { relay.port }
  var base: String { "http://127.0.0.1:\(port)" }

  /// The number of bytes that have passed since the rules were set.
  var passed: Int { state.withLock { $0.passed } }

  /// The number of requests that did not get through.
  var blockedCount: Int { state.withLock { $0.blockedCount } }

  /// The number of requests that were sent once more.
  var repeatCount: Int { state.withLock { $0.repeatCount } }

  /// The number of answers that were lost with their connections.
  var lostCount: Int { state.withLock { $0.lostCount } }

  /// Sets what happens from now on.
  func set(_ rules: Rules) { state.withLock { ($0.rules, $0.passed) = (rules, 0) } }

  /// Ends the proxy and all connections.
  func close() { relay.end() }

  private func serve(_ client: Int32, _ server: Int32) {
    let (answered, answers) = (DispatchSemaphore(value: 0), Answers())
    Thread.detachNewThread { [self] in
      _ = pump(server, client, answers)
      answered.signal()
    }
    let last = pump(client, server, answers, isRequest: true)
    answered.wait()
    repeatRequest(last)
  }

  /// Sends a request once more, if the rules say so, and waits for its answer.
  private func repeatRequest(_ request: [UInt8]) {
    guard !request.isEmpty, state.withLock({ $0.rules.repeats }), let again = relay.connected() else { return }
    if LoopbackRelay.write(request, to: again) { state.withLock { $0.repeatCount += 1 } }
    shutdown(again, Int32(SHUT_WR))
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while read(again, &buffer, buffer.count) > 0 {}
    Glibc.close(again)
  }

  /// Passes bytes on until either end closes or the rules say so.
  ///
  /// - Returns: The last request.
  private func pump(_ from: Int32, _ to: Int32, _ answers: Answers, isRequest: Bool = false) -> [UInt8] {
    var request: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = read(from, &buffer, buffer.count)
      guard count > 0 else { break }
      let (rules, before) = state.withLock { state in
        defer { state.passed += count }
        return (state.rules, state.passed)
      }
      // The wait is what is tested, and not a wait for something.
      if rules.delay > 0 { _ = poll(nil, 0, Int32(rules.delay * 1_000)) }
      if before >= rules.stall { continue }
      if !isRequest, answers.areSwallowed.withLock({ $0 }) { continue }
      let line = isRequest ? String(decoding: buffer[..<count].prefix { $0 != 10 }, as: UTF8.self) : ""
      let isHead = line.contains(" HTTP/1.")
      if isHead {
        answers.areSwallowed.withLock { $0 = rules.swallowed.map { line.contains($0) } ?? false }
        answers.requestCount.withLock { $0 += 1 }
        repeatRequest(request)
        request = []
      }
      if isRequest { request += buffer[..<count] }
      if !isRequest, rules.losesSecondAnswers, answers.requestCount.withLock({ $0 }) > 1 {
        state.withLock { $0.lostCount += 1 }
        shutdown(from, Int32(SHUT_RDWR))
        break
      }
      if let blocked = rules.blocked, isHead, line.contains(blocked) {
        state.withLock { $0.blockedCount += 1 }
        shutdown(from, Int32(SHUT_RDWR))
        break
      }
      let granted = max(0, min(count, rules.cut - before))
      guard LoopbackRelay.write(Array(buffer[..<granted]), to: to), granted == count else {
        shutdown(from, Int32(SHUT_RDWR))
        break
      }
    }
    shutdown(to, Int32(SHUT_RDWR))
    return request
  }
}
