package import NIOCore

/// The bounds that every connection keeps, and what all of them share.
package struct ConnectionLimits: Sendable {
  /// The connections that are open.
  package let count: ConnectionCount
  /// The bytes that wait for their clients to take them.
  package let budget: ByteBudget
  /// The time to the end of the first request's head, a TLS handshake included.
  package var head: TimeAmount
  /// The time in which a client must take what is sent to it.
  package var answer: TimeAmount
  /// The time for which what still comes is read, and dropped, after a request was refused before its end.
  package var linger: TimeAmount = .seconds(2)
}
