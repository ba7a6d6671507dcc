internal import NIOCore

/// The bounds that every connection keeps, and what all of them share.
struct ConnectionLimits: Sendable {
  /// The connections that are open.
  let count: ConnectionCount
  /// The bytes that wait for their clients to take them.
  let budget: ByteBudget
  /// The time to the end of the first request's head, a TLS handshake included.
  var head: TimeAmount
  /// The time in which a client must take what is sent to it.
  var answer: TimeAmount
  /// The time for which what still comes is read, and dropped, after a request was refused before its end.
  var linger: TimeAmount = .seconds(2)
}
