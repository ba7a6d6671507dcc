package import NIOCore

/// Limits of every connection, with the counters that all connections share.
package struct ConnectionLimits: Sendable {
  /// Counter of open connections.
  package let count: ConnectionCount
  /// Budget of the bytes that clients have not taken yet.
  package let budget: ByteBudget
  /// Time until the head of the first request has arrived, including a TLS handshake.
  package var head: TimeAmount
  /// Time in which a client must take an answer, or 64 KiB of it.
  package var answer: TimeAmount
  /// Time for which the rest of a refused request is read and dropped before the connection closes.
  package var linger: TimeAmount = .seconds(2)
}
