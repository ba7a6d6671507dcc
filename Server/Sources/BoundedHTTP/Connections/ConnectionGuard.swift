internal import Foundation
internal import HTTPTypes
package import NIOCore
package import NIOHTTPTypes

/// Channel handler that enforces the limits of one connection.
///
/// It closes a connection when there are too many, when the head of its first request is late, or when the client does not take an answer
/// in time. It also closes after the answer to a request whose body was not read to its end, because the next request cannot be told from
/// the rest of that body. Hummingbird limits the idle time between requests.
package final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  package typealias InboundIn = HTTPRequestPart
  package typealias InboundOut = HTTPRequestPart
  package typealias OutboundIn = HTTPResponsePart
  package typealias OutboundOut = HTTPResponsePart

  private let limits: ConnectionLimits
  /// Byte share of the identity that the current answer is for.
  private var share: ByteShare
  private var isCounted = false
  /// Number of requests that were read to their end and are not answered yet.
  ///
  /// Answers come in the order of requests.
  private var complete = 0
  /// Whether the connection closes after the current answer.
  private var isLast = false
  private var isLingering = false
  /// Bytes that wait for the client, and bytes that it has taken since the timer began.
  private var (pending, taken) = (0, 0)
  /// Number of bytes that a client must take to get the time for answers again: a slow line does, a byte a second does not.
  package static let piece = 64 << 10
  private var headTimer: Scheduled<Void>?
  private var answerTimer: Scheduled<Void>?

  package init(_ limits: ConnectionLimits) { (self.limits, share) = (limits, limits.budget.share(of: nil)) }

  package func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { begin(context) } }

  package func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    // Runs once, though a handler that is added to an active channel may also get `channelActive`.
    guard !isCounted, headTimer == nil else { return }
    isCounted = limits.count.enter()
    // A connection beyond the maximum is closed by a timer of zero, since this runs within its set-up, which must end first.
    headTimer = Self.close(context, in: isCounted ? limits.head : .zero)
    // Otherwise the system buffers megabytes and accepts nothing until a slow client has read a third, so its timer would run out.
    let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: CInt(TCP_NOTSENT_LOWAT)))
    _ = context.channel.setOption(option, value: SocketOptionValue(Self.piece))
  }

  package func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  package func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    // Both `channelInactive` and `handlerRemoved` come here, and the connection must be subtracted once.
    if isCounted { limits.count.leave() }
    isCounted = false
    headTimer?.cancel()
    answerTimer?.cancel()
  }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // The rest of a request that was refused and answered is dropped.
    if isLingering { return }
    switch unwrapInboundIn(data) {
    case .head: headTimer?.cancel()
    case .body: break
    case .end: complete += 1
    }
    context.fireChannelRead(data)
  }

  package func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard let share = event as? ByteShare else { return context.triggerUserOutboundEvent(event, promise: promise) }
    // The event ends here, because no other handler has a use for it.
    self.share = share
    promise?.succeed()
  }

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head):
      // With no complete request, this answers a request before its end, or bytes that are no request. The connection must end then.
      guard complete == 0, head.status.kind != .informational else { return context.write(data, promise: promise) }
      isLast = true
      head.headerFields[.connection] = "close"
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .body(let bytes):
      write(bytes, promise, context)
    case .end:
      guard isLast else {
        complete -= 1
        return context.write(data, promise: promise)
      }
      isLingering = true
      // A full close with unread bytes would reset the connection, and the client might lose the answer. So only the output closes now.
      context.writeAndFlush(data, promise: promise)
      context.close(mode: .output, promise: nil)
      _ = Self.close(context, in: limits.linger)
    }
  }

  /// Writes a part of a body in pieces of 64 KiB, to see the client's progress.
  ///
  /// The part counts as held until all of it is taken.
  private func write(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
    let (all, last) = (bytes.readableBytes, promise ?? context.eventLoop.makePromise(of: Void.self))
    if pending == 0 { begin(answerOf: context) }
    pending += all
    let share = share
    share.add(all)
    last.futureResult.assumeIsolated().whenComplete { _ in share.add(-all) }
    var rest = bytes
    // Runs once for an empty part, whose promise must be completed, too.
    repeat {
      let count = min(rest.readableBytes, Self.piece)
      guard let part = rest.readSlice(length: count) else { return }
      let done = rest.readableBytes == 0 ? last : context.eventLoop.makePromise(of: Void.self)
      done.futureResult.assumeIsolated().whenComplete { _ in self.note(taken: count, context) }
      context.write(wrapOutboundOut(.body(part)), promise: done)
    } while rest.readableBytes > 0
  }

  private func begin(answerOf context: ChannelHandlerContext) {
    answerTimer?.cancel()
    taken = 0
    answerTimer = Self.close(context, in: limits.answer)
  }

  private func note(taken count: Int, _ context: ChannelHandlerContext) {
    pending -= count
    taken += count
    if pending == 0 {
      answerTimer?.cancel()
      // After `end()` the flag is false, and no new timer may begin.
    } else if taken >= Self.piece, isCounted {
      begin(answerOf: context)
    }
  }

  private static func close(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
    // The timer captures the channel, since the context is invalid once the handler is removed.
    let channel = context.channel
    return context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}
