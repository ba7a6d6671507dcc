#if canImport(FoundationNetworking)
  internal import Foundation
  internal import Synchronization

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The connections of a transport that wait for its next request.
  ///
  /// An exchange of many scopes would otherwise make a connection for each of its requests.
  final class SocketPool: Sendable {
    private struct Waiting: Sendable {
      let socket: Int32
      let host: String
      /// Tells the connection from a later one with the same descriptor.
      let number: Int
    }
    private struct State: Sendable {
      var waiting: [Waiting] = []
      var number = 0
    }

    /// The most connections that wait: an exchange has so many scopes under way.
    private static let limit = 4
    /// The seconds that a connection waits: fewer than servers and routers give it.
    private static let seconds = 5.0

    private let state = Mutex(State())

    deinit { for waiting in state.withLock({ $0.waiting }) { _ = close(waiting.socket) } }

    /// Returns a connection to a host and port that is still open, as far as can be told; `nil` when none waits.
    func take(_ host: String) -> Int32? {
      while let socket = takeNewest(host) {
        var byte: UInt8 = 0
        // Nothing was asked, so there is nothing to read: an end, or an answer to nobody, makes the connection useless.
        if recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0, errno == EAGAIN { return socket }
        _ = close(socket)
      }
      return nil
    }

    private func takeNewest(_ host: String) -> Int32? {
      state.withLock { state in
        guard let position = state.waiting.lastIndex(where: { $0.host == host }) else { return nil }
        return state.waiting.remove(at: position).socket
      }
    }

    /// Keeps a connection whose request was answered to the last byte.
    func keep(_ socket: Int32, _ host: String) {
      let (number, excess) = state.withLock { state in
        state.number += 1
        state.waiting.append(Waiting(socket: socket, host: host, number: state.number))
        return (state.number, state.waiting.count > Self.limit ? state.waiting.removeFirst() : nil)
      }
      if let excess { _ = close(excess.socket) }
      HTTPConnection.clock.asyncAfter(deadline: .now() + Self.seconds) { [weak self] in self?.end(number) }
    }

    private func end(_ number: Int) {
      let ended = state.withLock { state in
        state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
      }
      if let ended { _ = close(ended.socket) }
    }
  }
#endif
