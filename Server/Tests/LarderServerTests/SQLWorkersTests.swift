import Foundation
import Synchronization
import Testing

@testable import LarderServer

#if canImport(Glibc)
  import Glibc
#endif

/// How long work is tried, and what becomes of it at the end.
@Suite(.timeLimit(.minutes(15))) struct SQLWorkersTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func workers(_ policy: SQLWorkers.Policy) -> SQLWorkers {
    let path = directory.file("store")
    return SQLWorkers(
      "test", threads: 1, transaction: .write, policy: policy,
      open: .init { () throws(StoreError) in try SQLiteDatabase.open(path, creates: true) })
  }

  private static func close(_ workers: SQLWorkers) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        workers.close()
        continuation.resume()
      }
    }
  }

  @Test func theEndFailsWhatWaitsWhileTheDatabaseHangs() async throws {
    let workers = self.workers(.init(isKeyed: true))
    let (begun, gate) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    let running = Task {
      try await workers.perform(key: "a") { _ in
        begun.continuation.yield()
        // Ends by itself where nobody opens the gate, so that a failure is one.
        _ = gate.wait(timeout: .now() + 20)
      }
    }
    for await _ in begun.stream { break }
    let waiting = ["a", "b"].map { key in Task { try await workers.perform(key: key) { _ in } } }
    let closing = Task { await Self.close(workers) }
    for task in waiting {
      await #expect(throws: StoreError.database(code: "closed", message: "the store is closed")) { try await task.value }
    }
    gate.signal()
    try await running.value
    await closing.value
  }

  @Test func workIsTriedForItsTimeHoweverOften() async throws {
    let workers = self.workers(.init(duration: .seconds(100)))
    let tries = Mutex(0)
    let most = 25
    let count = try await workers.perform { (_) throws(StoreError) in
      let count = tries.withLock { tries in
        tries += 1
        return tries
      }
      if count <= most { throw .database(code: "08001", message: "planned") }
      return count
    }
    #expect(count == most + 1)
    await Self.close(workers)
    let others = self.workers(.init())
    await #expect(throws: StoreError.self) {
      try await others.perform { (_) throws(StoreError) in throw StoreError.database(code: "08001", message: "planned") }
    }
    await Self.close(others)
  }

  /// A place that takes connections and never answers.
  @Test func theTellerIsNotWaitedForWhileTheDatabaseHangs() async throws {
    let silent = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { Glibc.close(silent) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(silent, $0, size) == 0 && listen(silent, 8) == 0 && getsockname(silent, $0, &size) == 0
      }
    }
    #expect(isBound)
    var options = PostgreSQLOptions()
    options.connectSeconds = 60
    let place = try PostgreSQLAddress("postgresql://larder@127.0.0.1:\(UInt16(bigEndian: address.sin_port))/larder?sslmode=disable")
    let teller = PostgreSQLTeller(PostgreSQLOpening(address: place, options: options), LogLines().logger())
    teller.tell(1, of: "a")
    // It is connecting once the other side has something to read.
    var polled = pollfd(fd: silent, events: Int16(POLLIN), revents: 0)
    #expect(poll(&polled, 1, 30_000) == 1)
    let clock = ContinuousClock()
    let since = clock.now
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        teller.close()
        continuation.resume()
      }
    }
    #expect(clock.now - since < .seconds(40))
  }
}
