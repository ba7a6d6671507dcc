#if canImport(FoundationNetworking)
  internal import Foundation
  internal import Synchronization

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The connections of a transport to its server that wait for a request.
  ///
  /// An exchange of many scopes would otherwise make a connection for each of its requests.
  final class SocketPool: Sendable {
    private struct Waiting: Sendable {
      let socket: Int32
      let since: ContinuousClock.Instant
    }

    /// The most connections that wait: as many as `exchange()` has scopes under way.
    private static let limit = 4

    private let idleTime: Duration
    private let waiting = Mutex<[Waiting]>([])

    init(idleTime: Duration) { self.idleTime = idleTime }

    deinit { for waiting in waiting.withLock({ $0 }) { _ = close(waiting.socket) } }

    /// Returns the connection that was used last; `nil` when none waits that is still open.
    func take() -> Int32? {
      endOld()
      while let socket = waiting.withLock({ $0.popLast()?.socket }) {
        var byte: UInt8 = 0
        // Bytes would be an answer to nobody. On a connection that is open and silent there is nothing to read.
        if recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0, errno == EAGAIN { return socket }
        _ = close(socket)
      }
      return nil
    }

    /// Keeps a connection whose request was answered to the last byte.
    func keep(_ socket: Int32) {
      let excess = waiting.withLock { waiting in
        waiting.append(Waiting(socket: socket, since: .now))
        return waiting.count > Self.limit ? waiting.removeFirst() : nil
      }
      if let excess { _ = close(excess.socket) }
      HTTPConnection.clock.asyncAfter(deadline: .now() + idleTime / .seconds(1)) { [weak self] in self?.endOld() }
    }

    /// Closes the connections that have waited too long, also when the machine was asleep meanwhile.
    private func endOld() {
      let end = ContinuousClock.now - idleTime
      let old = waiting.withLock { waiting in
        let count = waiting.prefix { $0.since <= end }.count
        defer { waiting.removeFirst(count) }
        return waiting.prefix(count)
      }
      for old in old { _ = close(old.socket) }
    }
  }
#endif
