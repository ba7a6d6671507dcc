internal import LarderWire

#if canImport(FoundationNetworking)
  internal import Foundation
  internal import FoundationNetworking
  internal import Synchronization

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// A request over plain http on Linux, which runs on a thread of its own.
  ///
  /// URLSession on Linux ends the process if a connection ends in the middle of a response's header (Swift 6.3.1: "Transfer completed, but
  /// there's no response"). Over TLS, such an end of a connection is an ordinary error, so https requests use URLSession.
  final class SocketRequest: Sendable {
    private struct State: Sendable {
      var socket: Int32?
      var isCancelled = false
    }

    private let request: URLRequest
    private let call: HTTPCall
    /// Pool of idle connections, or `nil` for a request with a connection of its own.
    private let pool: SocketPool?
    private let state = Mutex(State())

    init(_ request: URLRequest, for call: HTTPCall, pool: SocketPool?) { (self.request, self.call, self.pool) = (request, call, pool) }

    /// Starts the request, which passes its response or its error to `call`.
    // The request runs on a thread of its own, since its blocking calls would occupy threads of Swift's cooperative pool.
    func start() { Thread.detachNewThread { [self] in run() } }

    /// Stops the request at once, by shutting down its socket.
    func cancel() {
      state.withLock { state in
        state.isCancelled = true
        // The socket is shut down and not closed, because the request's thread may be reading from the socket, and the system could reuse
        // the number of a closed socket for another file.
        if let socket = state.socket { _ = shutdown(socket, Int32(SHUT_RDWR)) }
      }
    }

    private func run() {
      do throws(SyncProblem) {
        // If the server has closed a reused connection without notice, the request is sent again once, on a new connection.
        if let socket = pool?.takeSocket(), adopt(socket), try exchange(over: socket, isReused: true) { return }
        closeSocket()
        _ = try exchange(over: try connect(), isReused: false)
      } catch {
        closeSocket()
        call.fail(error)
      }
    }

    /// Stores the socket of the request.
    ///
    /// Closes the socket and returns `false` if the request was cancelled.
    private func adopt(_ socket: Int32) -> Bool {
      state.withLock { state in
        if state.isCancelled { _ = close(socket) } else { state.socket = socket }
        return !state.isCancelled
      }
    }

    private func closeSocket() {
      state.withLock { state in
        if let socket = state.socket { _ = close(socket) }
        state.socket = nil
      }
    }

    /// Returns the socket to the pool, or closes it if the request was cancelled.
    private func keepSocket(in pool: SocketPool) {
      let kept = state.withLock { state in
        // The socket is removed from the state within the lock, since a later cancellation could shut down a socket that the pool has given
        // to another request.
        guard !state.isCancelled, let socket = state.socket else { return Int32?.none }
        state.socket = nil
        return socket
      }
      if let kept { pool.keepSocket(kept) } else { closeSocket() }
    }

    /// Sends the request and passes the response to `call`.
    ///
    /// - Parameter isReused: Whether the socket had an earlier request. The server may close a reused socket while the new request is on
    ///   its way.
    /// - Returns: `false` if the server has closed a reused socket without a response. The caller then sends the request on another socket.
    ///   A second request is safe even if the server has processed the first, since every request of a transport may arrive twice.
    private func exchange(over socket: Int32, isReused: Bool) throws(SyncProblem) -> Bool {
      if isReused { limitSilence(of: socket) }
      let isSent = send(head + (request.httpBody ?? Data()), over: socket)
      guard let parser = try receive(from: socket, isReused: isReused) else { return false }
      // The socket is returned to the pool before `call` ends, so that a request that follows at once finds the idle connection.
      if isSent, parser.isPersistent, let pool { keepSocket(in: pool) } else { closeSocket() }
      if parser.isComplete, let status = parser.status { call.complete(status: status, retryAfter: parser.retryAfter) }
      return true
    }

    /// Makes a connection fail if the server acknowledges nothing for ten seconds, such as after a change of the network.
    ///
    /// After ten seconds without an acknowledgement, the request can still be sent over another connection before its timeout. A server
    /// that is too busy to read also counts as silent.
    private func limitSilence(of socket: Int32) {
      var milliseconds: UInt32 = 10_000
      setsockopt(socket, Int32(IPPROTO_TCP), Int32(TCP_USER_TIMEOUT), &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
    }

    private var head: Data {
      let url = request.url
      let path = url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
      var target = path?.percentEncodedPath ?? "/"
      if let query = path?.percentEncodedQuery { target += "?\(query)" }
      var text = "\(request.httpMethod ?? "GET") \(target) HTTP/1.1\r\nHost: \(host.contains(":") ? "[\(host)]" : host)"
      if let port = url?.port { text += ":\(port)" }
      // A request without a pool of connections has a connection of its own, which the server should close after the response.
      text += pool == nil ? "\r\nConnection: close\r\n" : "\r\n"
      // A header whose value contains a line end is left out, since the rest of the value would be read as further headers.
      for (name, value) in request.allHTTPHeaderFields ?? [:] where !value.contains(where: \.isNewline) { text += "\(name): \(value)\r\n" }
      if let body = request.httpBody { text += "Content-Length: \(body.count)\r\n" }
      return Data((text + "\r\n").utf8)
    }

    private var host: String { request.url?.host(percentEncoded: false)?.trimmingCharacters(in: ["[", "]"]) ?? "" }

    private func connect() throws(SyncProblem) -> Int32 {
      var hints = addrinfo()
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      var found: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, String(request.url?.port ?? 80), &hints, &found) == 0 else {
        throw .unreachable("the host is not known; is there a network?")
      }
      defer { freeaddrinfo(found) }
      var next = found
      while let address = next?.pointee {
        next = address.ai_next
        let socket = socket(address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), address.ai_protocol)
        guard socket >= 0 else { continue }
        // On Linux, the send timeout also limits `connect`. Without the timeout, a host that does not respond would block the thread for
        // minutes.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        // The socket is stored before `connect`, so that a cancellation can shut it down during the attempt.
        guard adopt(socket) else { break }
        if systemConnect(socket, to: address.ai_addr, length: address.ai_addrlen) == 0 { return socket }
        closeSocket()
      }
      throw .unreachable("the connection was refused")
    }

    /// Sends bytes over the socket.
    ///
    /// - Returns: Whether all bytes were sent. If not all bytes were sent, the server may still respond, since it may refuse a request
    ///   before it has read the whole body.
    private func send(_ data: Data, over socket: Int32) -> Bool {
      var sent = 0
      while sent < data.count {
        // Without the flag `MSG_NOSIGNAL`, sending over a closed connection would end the process by SIGPIPE.
        let count = data.withUnsafeBytes {
          systemSend($0.baseAddress.map { $0 + sent }, count: $0.count - sent, over: socket, flags: Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        sent += count
        call.noteSent(count)
      }
      return true
    }

    /// Receives the response and passes its body to `call`.
    ///
    /// - Returns: The parsed response, or `nil` if a reused connection was closed before the first byte of a response.
    private func receive(from socket: Int32, isReused: Bool) throws(SyncProblem) -> HTTPResponseParser? {
      var parser = HTTPResponseParser()
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      while !parser.isComplete {
        let count = recv(socket, &buffer, buffer.count, 0)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          if isReused, !parser.hasBegun { return nil }
          guard count == 0, parser.end() else { throw .unreachable("the connection broke off") }
          break
        }
        let result = buffer.withUnsafeBytes { bytes in
          Result { () throws(SyncProblem) in try parser.consume(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
        }
        let body = try result.get()
        // `call.receive` returns `false` for a body over the limit, which is then not read to its end.
        if let status = parser.status, !call.receive(body, status: status) { return parser }
      }
      return parser
    }
  }

  // `SocketRequest` has methods named `connect` and `send`, which hide the system's functions of the same names.
  private func systemConnect(_ socket: Int32, to address: UnsafePointer<sockaddr>?, length: socklen_t) -> Int32 {
    connect(socket, address, length)
  }

  private func systemSend(_ bytes: UnsafeRawPointer?, count: Int, over socket: Int32, flags: Int32) -> Int {
    send(socket, bytes, count, flags)
  }

  /// A pool of idle connections to one server.
  ///
  /// Without the pool, an exchange of many scopes would open a connection for each request.
  final class SocketPool: Sendable {
    private struct Waiting: Sendable {
      let socket: Int32
      let since: ContinuousClock.Instant
    }

    /// Largest number of idle connections: the number of scopes that `SyncEngine.exchange()` exchanges at a time.
    private static let limit = 4

    private let idleTime: Duration
    private let waiting = Mutex<[Waiting]>([])

    init(idleTime: Duration) { self.idleTime = idleTime }

    deinit { for waiting in waiting.withLock({ $0 }) { _ = close(waiting.socket) } }

    /// Returns the most recently used connection that is still open, or `nil` if there is none.
    func takeSocket() -> Int32? {
      endOld()
      while let socket = waiting.withLock({ $0.popLast()?.socket }) {
        var byte: UInt8 = 0
        // On an open connection without unread bytes, `recv` fails with EAGAIN. A connection with unread bytes is closed, since these bytes
        // would be read as the response to the next request.
        if recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0, errno == EAGAIN { return socket }
        _ = close(socket)
      }
      return nil
    }

    /// Adds an idle connection, from which the whole response was read, to the pool.
    func keepSocket(_ socket: Int32) {
      let excess = waiting.withLock { waiting in
        waiting.append(Waiting(socket: socket, since: .now))
        return waiting.count > Self.limit ? waiting.removeFirst() : nil
      }
      if let excess { _ = close(excess.socket) }
      // If no later request comes, only this delayed block closes the idle connections.
      HTTPConnection.clock.asyncAfter(deadline: .now() + idleTime / .seconds(1)) { [weak self] in self?.endOld() }
    }

    /// Closes connections that were idle for longer than `idleTime`, including time in which the machine slept.
    private func endOld() {
      let end = ContinuousClock.now - idleTime
      let old = waiting.withLock { waiting in
        let count = waiting.prefix { $0.since <= end }.count
        defer { waiting.removeFirst(count) }
        return waiting.prefix(count)
      }
      // The sockets are closed outside the lock, since `close` is a system call and other requests would wait for the lock.
      for old in old { _ = close(old.socket) }
    }
  }
#endif
