import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A request to a server on this machine, which is sent on a connection of its own and blocks a thread.
///
/// Not Foundation's, which on Linux does not take the answers of chromedriver: their header fields have no space after the colon.
struct LoopbackRequest: Sendable {
  var port: UInt16
  var method: String
  var path: String
  var body: Data?
  var limit: Duration

  /// An answer.
  struct Answer: Sendable {
    var status: Int
    var body: Data
  }

  /// Sends the request, and returns the answer, on a thread of its own.
  func answer() async throws(WebDriverFailure) -> Answer {
    let result = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(returning: Swift.Result { () throws(WebDriverFailure) in try blocking() })
      }
    }
    return try result.get()
  }

  private func blocking() throws(WebDriverFailure) -> Answer {
    let end = ContinuousClock.now + limit
    let socket = try connected()
    defer { close(socket) }
    try send(Array(message), to: socket, until: end)
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let answer = try Self.parsed(received) { return answer }
      try wait(for: socket, POLLIN, until: end)
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count > 0 else { throw failure(count == 0 ? "the answer ends early" : Self.reason) }
      received += buffer[..<count]
    }
  }

  private var message: Data {
    var head = "\(method) /\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
    if let body { head += "Content-Type: application/json; charset=utf-8\r\nContent-Length: \(body.count)\r\n" }
    return Data("\(head)\r\n".utf8) + (body ?? Data())
  }

  private func connected() throws(WebDriverFailure) -> Int32 {
    #if canImport(Glibc)
      let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
      var on: Int32 = 1
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
    guard socket >= 0 else { throw failure(Self.reason) }
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    }
    if isConnected { return socket }
    defer { close(socket) }
    throw failure(Self.reason)
  }

  private func send(_ bytes: [UInt8], to socket: Int32, until end: ContinuousClock.Instant) throws(WebDriverFailure) {
    #if canImport(Glibc)
      let (write, flags) = (Glibc.send, Int32(MSG_NOSIGNAL))
    #else
      let (write, flags) = (Darwin.send, Int32(0))
    #endif
    var rest = bytes[...]
    while !rest.isEmpty {
      try wait(for: socket, POLLOUT, until: end)
      // Not more at once than a socket takes without blocking.
      let count = Array(rest.prefix(4096)).withUnsafeBytes { write(socket, $0.baseAddress, $0.count, flags) }
      guard count > 0 else { throw failure(Self.reason) }
      rest = rest.dropFirst(count)
    }
  }

  private func wait(for socket: Int32, _ event: some BinaryInteger, until end: ContinuousClock.Instant) throws(WebDriverFailure) {
    while true {
      let left = Int32((end - .now) / .milliseconds(1))
      guard left > 0 else { throw WebDriverFailure(code: .timeout, message: "\(method) \(path): no answer within \(limit)") }
      var polled = pollfd(fd: socket, events: Int16(event), revents: 0)
      let count = poll(&polled, 1, left)
      if count > 0 { return }
      if count < 0, errno != EINTR { throw failure(Self.reason) }
    }
  }

  private static var reason: String { String(cString: strerror(errno)) }

  private func failure(_ reason: String) -> WebDriverFailure {
    WebDriverFailure(code: .connection, message: "\(method) \(path): \(reason)")
  }
}
