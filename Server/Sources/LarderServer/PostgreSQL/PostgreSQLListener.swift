internal import CPostgreSQL
internal import Foundation
internal import Logging
internal import Synchronization

/// Thread that receives the announcements of other processes (LISTEN), on a connection that it opens again when it is lost.
final class PostgreSQLListener: Sendable {
  private struct State: Sendable {
    var isRunning = false
    var isStopped = false
  }

  private let state = Mutex(State())
  private let ended = DispatchGroup()
  private let opening: PostgreSQLOpening
  private let logger: Logger
  private let bell = Bell()

  init(_ opening: PostgreSQLOpening, _ logger: Logger) { (self.opening, self.logger) = (opening, logger) }

  func start(_ heard: @escaping @Sendable (Int, String) -> Void) {
    let starts = state.withLock { state in
      if state.isRunning || state.isStopped { return false }
      state.isRunning = true
      return true
    }
    if !starts { return }
    ended.enter()
    let thread = Thread { [self] in
      work(heard)
      ended.leave()
    }
    thread.name = "larder-listen"
    thread.start()
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    bell.ring()
  }

  /// Blocks until the thread has ended, but for 2 seconds at most.
  ///
  /// A thread that is connecting ends by itself, later.
  func wait() { _ = ended.wait(timeout: .now() + 2) }

  private func work(_ heard: @Sendable (Int, String) -> Void) {
    var failures = 0
    while !state.withLock({ $0.isStopped }) {
      do throws(StoreError) {
        let connection = try opening.connect()
        try connection.simple("LISTEN \(PostgreSQLPokes.channel)")
        failures = 0
        if try listen(connection, heard) { return }
      } catch {
        failures += 1
        logger.warning("listening for commits of other servers failed; looking for them goes on", metadata: ["error": "\(error)"])
        // An engine without LISTEN leaves only the query for new commits once a second.
        if error.isUnknownToEngine { return }
        // Random, so that the servers that have lost one database do not all come back to it at once.
        if bell.rings(within: .random(in: 0.1...min(10, 0.5 * Double(1 << min(failures, 5))))) { return }
      }
    }
  }

  /// Passes announcements on until the connection is lost, which throws, or the bell rings, which returns true.
  private func listen(_ connection: PostgreSQLConnection, _ heard: (Int, String) -> Void) throws(StoreError) -> Bool {
    while true {
      // Before the wait, because `poll` does not see the announcements that libpq has read already.
      while let sign = PQnotifies(connection.connection) {
        defer { PQfreemem(sign) }
        if let text = sign.pointee.extra, let (head, scope) = PostgreSQLPokes.sign(String(cString: text)) { heard(head, scope) }
      }
      if bell.rings(orReadable: PQsocket(connection.connection)) { return true }
      if PQconsumeInput(connection.connection) == 0 { throw PostgreSQLFailure.lost(connection.connection) }
    }
  }
}

/// Pipe that wakes a thread which waits for a descriptor.
private final class Bell: Sendable {
  private let ends: (read: Int32, write: Int32)

  init() {
    var descriptors: [Int32] = [-1, -1]
    // Without free descriptors the bell cannot ring, and the thread ends with the process.
    ends = pipe(&descriptors) == 0 ? (descriptors[0], descriptors[1]) : (-1, -1)
  }

  deinit {
    for descriptor in [ends.read, ends.write] where descriptor >= 0 { close(descriptor) }
  }

  func ring() {
    var byte: UInt8 = 1
    if ends.write >= 0 { _ = write(ends.write, &byte, 1) }
  }

  /// Blocks until the bell rings or a time in seconds has passed, and returns whether it rang.
  func rings(within seconds: Double) -> Bool { wait(-1, Int32(seconds * 1_000)) }

  /// Blocks until the bell rings or a descriptor can be read, and returns whether it rang.
  func rings(orReadable descriptor: Int32) -> Bool { wait(descriptor, -1) }

  private func wait(_ descriptor: Int32, _ milliseconds: Int32) -> Bool {
    var polled = [pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0), pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
    while poll(&polled, 2, milliseconds) < 0, errno == EINTR {}
    return polled[0].revents != 0
  }
}
