// Connections/ adds TLS to connections, reads changed certificates again, and ends connections before a shutdown.
// Invariant: a new connection uses the newest certificate that could be read.
// Called by SyncServer.

internal import BoundedHTTP
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOSSL

/// HTTP/1.1 connections over TLS, each with the certificate that is the newest when it begins.
///
/// Hummingbird's own TLS channel keeps one certificate for as long as it runs.
struct SecuredChannel: ServerChildChannel {
  typealias Value = HTTP1Channel.Value

  let base: CheckedChannel
  let files: TLSFiles

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // Added before the handlers of HTTP, which must get decrypted bytes.
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: files.context))
    }.flatMap { base.setup(channel: channel, logger: logger) }
  }

  func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
