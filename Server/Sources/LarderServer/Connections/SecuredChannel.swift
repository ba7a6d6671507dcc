internal import BoundedHTTP
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOSSL

/// Connections of HTTP/1.1 over TLS, each with the certificate that is the newest when it begins.
///
/// Hummingbird's own has one certificate for as long as it runs.
struct SecuredChannel: ServerChildChannel {
  typealias Value = HTTP1Channel.Value

  let base: CheckedChannel
  let files: TLSFiles

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: files.context))
    }.flatMap { base.setup(channel: channel, logger: logger) }
  }

  func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
