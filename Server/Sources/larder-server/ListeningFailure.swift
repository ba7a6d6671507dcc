internal import Foundation
internal import LarderServer
internal import NIOCore

/// Error messages for an address that the server cannot listen on.
enum ListeningFailure {
  /// Returns the failure in terms of the command's options, or `nil` for a failure of another kind.
  static func sentence(for error: any Error, host: String, port: Int) -> ServerError? {
    if error is SocketAddressError || error is SocketAddressError.UnknownHost {
      return ServerError(
        expected: "the address of this machine, or a name that leads to it, for --host", found: "'\(host)', which leads to none",
        advice: "name an IP address, such as 0.0.0.0 for all of this machine")
    }
    guard let error = error as? IOError else { return nil }
    switch error.errnoCode {
    case EADDRINUSE:
      return ServerError(
        expected: "a free port for --port", found: "\(port), at which another program listens",
        advice: "end that program, or name another port, 0 for any")
    case EADDRNOTAVAIL:
      return ServerError(
        expected: "an address of this machine for --host", found: "'\(host)'", advice: "name one of its own, or 0.0.0.0 for all")
    case EACCES, EPERM:
      return ServerError(
        expected: "a port at which this user may listen for --port", found: "\(port)",
        advice: "name a port from 1024 on, or grant the program CAP_NET_BIND_SERVICE")
    default:
      return ServerError(
        expected: "an address and a port to listen at", found: "\(host):\(port), and \(String(cString: strerror(error.errnoCode)))",
        advice: "name others with --host and --port")
    }
  }
}
