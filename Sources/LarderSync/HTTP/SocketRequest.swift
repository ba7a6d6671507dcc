#if canImport(FoundationNetworking)
  internal import Foundation
  internal import FoundationNetworking
  internal import Synchronization

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// A request over http, on a thread of its own.
  ///
  /// Not by URLSession, which on Linux ends the process when a connection ends in the middle of the header of an answer (seen with Swift
  /// 6.3.1: "Transfer completed, but there's no response"). Over TLS that end is an error there, and URLSession is what speaks TLS.
  final class SocketRequest: Sendable {
    private struct State: Sendable {
      var socket: Int32?
      var isCancelled = false
    }

    private let request: URLRequest
    private let call: HTTPCall
    /// The connections that wait for a request; `nil` for a request with a connection of its own.
    private let pool: SocketPool?
    private let state = Mutex(State())

    init(_ request: URLRequest, _ call: HTTPCall, _ pool: SocketPool?) { (self.request, self.call, self.pool) = (request, call, pool) }

    /// Begins the request, whose answer or failure goes to the call.
    func start() { Thread.detachNewThread { [self] in run() } }

    /// Ends the request at once.
    func cancel() {
      state.withLock { state in
        state.isCancelled = true
        if let socket = state.socket { _ = shutdown(socket, Int32(SHUT_RDWR)) }
      }
    }

    private func run() {
      do throws(SyncProblem) {
        if let socket = pool?.take(), adopt(socket), try exchange(over: socket, isReused: true) { return }
        closeSocket()
        _ = try exchange(over: try connect(), isReused: false)
      } catch {
        closeSocket()
        call.fail(error)
      }
    }

    /// Gives the request a socket.
    ///
    /// Closes the socket and returns `false` when the request was cancelled.
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

    /// Gives the socket to the pool for a later request, or closes it when this one was cancelled.
    private func keepSocket(in pool: SocketPool) {
      let kept = state.withLock { state in
        guard !state.isCancelled, let socket = state.socket else { return Int32?.none }
        state.socket = nil
        return socket
      }
      if let kept { pool.keep(kept) } else { closeSocket() }
    }

    /// Sends the request, and gives its answer to the call.
    ///
    /// - Parameter isReused: Whether the socket had an earlier request. The server may close it while this one is on its way.
    /// - Returns: `false` when the server has closed a reused socket without an answer. The request must be sent on another socket then,
    ///   which is safe where the server has taken it all the same: every request of a transport may come twice.
    private func exchange(over socket: Int32, isReused: Bool) throws(SyncProblem) -> Bool {
      if isReused { limitSilence(of: socket) }
      let isSent = send(head + (request.httpBody ?? Data()), over: socket)
      guard let parser = try receive(from: socket, isReused: isReused) else { return false }
      // First, or the request that comes next would make a connection.
      if isSent, parser.isPersistent, let pool { keepSocket(in: pool) } else { closeSocket() }
      if parser.isComplete, let status = parser.status { call.complete(status: status, retryAfter: parser.retryAfter) }
      return true
    }

    /// Ends a connection over which nothing is taken for ten seconds, as after a change of the network.
    ///
    /// The request is then sent on another one, before its time is up. A server that is too busy to read counts as well.
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
      text += pool == nil ? "\r\nConnection: close\r\n" : "\r\n"
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
        // For connecting, too: a host that does not answer would hold the thread for minutes.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard adopt(socket) else { break }
        if systemConnect(socket, address.ai_addr, address.ai_addrlen) == 0 { return socket }
        closeSocket()
      }
      throw .unreachable("the connection was refused")
    }

    /// - Returns: Whether all was sent: a server that refuses a body may answer before it has read all of it.
    private func send(_ data: Data, over socket: Int32) -> Bool {
      var sent = 0
      while sent < data.count {
        let count = data.withUnsafeBytes { systemSend(socket, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL)) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        sent += count
        call.noteSent(count)
      }
      return true
    }

    /// - Returns: The answer; `nil` when the connection was closed before the first byte of it, and was one that is reused.
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
          Result { () throws(SyncProblem) in try parser.take(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
        }
        let body = try result.get()
        // What is too large is not read to its end.
        if let status = parser.status, !call.take(body, status: status) { return parser }
      }
      return parser
    }
  }

  // Members of the class have the names of these, too.
  private func systemConnect(_ socket: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t) -> Int32 {
    connect(socket, address, length)
  }

  private func systemSend(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(socket, bytes, count, flags)
  }
#endif
