package import HummingbirdCore
package import Logging
package import NIOCore
internal import NIOHTTPTypesHTTP1

/// Connections of HTTP/1.1 whose requests are checked before Hummingbird sees them.
package struct CheckedChannel: ServerChildChannel {
  package typealias Value = HTTP1Channel.Value

  package let base: HTTP1Channel
  package let paths: any KnownPaths
  package let log: AnswerLog

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      let bytes = RequestBytes()
      try channel.pipeline.syncOperations.addHandler(bytes)
      return NIOLoopBound(bytes, eventLoop: channel.eventLoop)
    }.flatMap { bytes in
      base.setup(channel: channel, logger: logger).flatMapThrowing { value in
        // Hummingbird has no room for handlers between the parser and its own types.
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(
          RequestCheck(bytes.value, paths, log), position: .before(pipeline.handler(type: HTTP1ToHTTPServerCodec.self)))
        return value
      }
    }
  }

  package func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
