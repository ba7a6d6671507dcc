package import HummingbirdCore
package import Logging
package import NIOCore
internal import NIOHTTPTypesHTTP1

/// HTTP/1.1 connections whose requests pass a `RequestCheck` before Hummingbird gets them.
package struct CheckedChannel: ServerChildChannel {
  package typealias Value = HTTP1Channel.Value

  package let base: HTTP1Channel
  package let paths: any KnownPaths
  package let log: AnswerLog

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // Added before the parser, to get the bytes first.
      let bytes = RequestBytes()
      try channel.pipeline.syncOperations.addHandler(bytes)
      return NIOLoopBound(bytes, eventLoop: channel.eventLoop)
    }.flatMap { bytes in
      base.setup(channel: channel, logger: logger).flatMapThrowing { value in
        // Hummingbird adds parser and codec together, so the check is inserted between them afterwards.
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(
          RequestCheck(bytes.value, paths, log), position: .before(pipeline.handler(type: HTTP1ToHTTPServerCodec.self)))
        return value
      }
    }
  }

  package func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
