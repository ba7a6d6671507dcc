import Dispatch
import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A connection on which bytes are sent as they are, and nothing is read before it is asked for.
final class RawConnection: Sendable {
  private let socket: Int32
  private let queue = DispatchQueue(label: "raw-connection")

  /// Connects to loopback; a small window of the receiver lets a server notice soon that nobody reads.
  init(port: Int, window: Int32? = nil) throws {
    #if canImport(Glibc)
      socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    if var window { setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &window, socklen_t(MemoryLayout<Int32>.size)) }
    // A bound for a test that would wait for ever.
    var time = timeval(tv_sec: 50, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let (socket, length) = (socket, socklen_t(MemoryLayout<sockaddr_in>.size))
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, length) }
    }
    guard result == 0 else { throw POSIXError(.ECONNREFUSED) }
  }

  deinit { close(socket) }

  /// Sends a text; what a closed connection does not take is dropped.
  func send(_ text: String) async { await send(Data(text.utf8)) }

  func send(_ data: Data) async {
    await onQueue { [socket] in
      var sent = 0
      while sent < data.count {
        let count = data[sent...].withUnsafeBytes { bytes in
          #if canImport(Glibc)
            Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
          #else
            Darwin.send(socket, bytes.baseAddress, bytes.count, 0)
          #endif
        }
        guard count > 0 else { return }
        sent += count
      }
    }
  }

  /// Returns all that comes until the server closes; `nil` where it does not in time.
  func readToEnd() async -> String? {
    await onQueue { [self] in
      var all: [UInt8] = []
      while true {
        guard let part = readPart() else { return nil }
        if part.isEmpty { return String(decoding: all, as: UTF8.self) }
        all += part
      }
    }
  }

  /// Returns what has come once it has an end in it.
  func read(until end: String) async -> String {
    await onQueue { [self] in
      var all = ""
      while !all.contains(end), let part = readPart(), !part.isEmpty { all += String(decoding: part, as: UTF8.self) }
      return all
    }
  }

  /// Returns bytes; none at the end, which a reset is, too, and `nil` where nothing comes.
  private func readPart() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &buffer, buffer.count, 0)
    if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return nil }
    return Array(buffer[..<max(count, 0)])
  }

  private func onQueue<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: work()) } }
  }
}
