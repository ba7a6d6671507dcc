#if canImport(Glibc)
  import Foundation
  import Glibc
  import LarderSync
  import Synchronization

  /// A server on loopback whose answers are bytes of a script, whatever is asked, and which counts its connections.
  final class ScriptedServer: Sendable {
    /// The bytes of an answer, and what becomes of its connection.
    struct Answer: Sendable {
      var bytes: String
      var closesConnection = false
      /// Whether the answer comes before the body of the request is read.
      var isEarly = false

      /// A page without changes, with other header fields or in another status.
      static func page(_ fields: String = "", status: String = "HTTP/1.1 200 OK", closesConnection: Bool = false) -> Answer {
        Answer(bytes: "\(status)\r\nContent-Length: \(json.utf8.count)\r\n\(fields)\r\n\(json)", closesConnection: closesConnection)
      }
      static let json = String(
        decoding: SyncChanges(history: "h", since: 0, until: 0, head: 0, more: false, horizon: 0, changes: []).json, as: UTF8.self)
      /// The end of the connection in place of an answer.
      static let none = Answer(bytes: "", closesConnection: true)
    }

    private struct State: Sendable {
      var script: [Answer] = []
      var connections = 0
      var requests = 0
      var answers = 0
      var sockets: Set<Int32> = []
    }

    let port: Int
    private let listener: Int32
    private let state = Mutex(State())

    init() throws {
      listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let (listener, length) = (listener, size)
      let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
        }
      }
      guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
      port = Int(UInt16(bigEndian: address.sin_port))
      Thread.detachNewThread { [self] in
        while case let client = accept(listener, nil, nil), client >= 0 {
          state.withLock { state in
            state.connections += 1
            state.sockets.insert(client)
          }
          Thread.detachNewThread { [self] in serve(client) }
        }
        close(listener)
      }
    }

    var connections: Int { state.withLock { $0.connections } }
    var requests: Int { state.withLock { $0.requests } }
    /// The answers that were sent as the script has them.
    var answers: Int { state.withLock { $0.answers } }
    /// The connections that are open at this end.
    var openConnections: Int { state.withLock { $0.sockets.count } }

    /// Sets the answers to the next requests; behind them come pages.
    func set(_ script: [Answer]) { state.withLock { $0.script = script } }

    /// Sends bytes that nobody asked for over every connection.
    func say(_ text: String) {
      state.withLock { for socket in $0.sockets { _ = send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) } }
    }

    /// Ends the connections that are open.
    func endConnections() { state.withLock { for socket in $0.sockets { shutdown(socket, Int32(SHUT_RDWR)) } } }

    /// Ends the server.
    func end() {
      endConnections()
      shutdown(listener, Int32(SHUT_RDWR))
    }

    private func serve(_ client: Int32) {
      defer {
        state.withLock { _ = $0.sockets.remove(client) }
        close(client)
      }
      while let bodyBytes = readHead(from: client) {
        let answer = state.withLock { state in
          state.requests += 1
          return state.script.isEmpty ? .page() : state.script.removeFirst()
        }
        if !answer.isEarly { skip(bodyBytes, of: client) }
        var bytes = Array(answer.bytes.utf8)
        while !bytes.isEmpty {
          let count = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
          guard count > 0 else { return }
          bytes.removeFirst(count)
        }
        state.withLock { $0.answers += 1 }
        if answer.closesConnection { return }
        if answer.isEarly { skip(bodyBytes, of: client) }
      }
    }

    /// Waits for the head of a request.
    /// - Returns: The length of its body; `nil` at the end of the connection.
    private func readHead(from client: Int32) -> Int? {
      var (text, byte) = ("", UInt8(0))
      while !text.hasSuffix("\r\n\r\n") {
        guard recv(client, &byte, 1, 0) == 1 else { return nil }
        text.unicodeScalars.append(Unicode.Scalar(byte))
      }
      return text.firstMatch(of: /Content-Length: ([0-9]+)/).flatMap { Int($0.1) } ?? 0
    }

    private func skip(_ count: Int, of client: Int32) {
      var (left, buffer) = (count, [UInt8](repeating: 0, count: 4_096))
      while left > 0 {
        let read = recv(client, &buffer, min(left, buffer.count), 0)
        guard read > 0 else { return }
        left -= read
      }
    }
  }
#endif
