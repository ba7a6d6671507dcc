internal import Foundation
internal import HTTPTypes
package import NIOCore
package import NIOHTTPTypes

/// The keeper of one connection's bounds.
///
/// A connection ends when there are too many, when its first request does not come in time, when the client does not take what is sent to
/// it, and behind an answer to a request whose body was not read to its end: what follows could not be told from the rest of that body.
/// The time between two requests is Hummingbird's to bound.
package final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  package typealias InboundIn = HTTPRequestPart
  package typealias InboundOut = HTTPRequestPart
  package typealias OutboundIn = HTTPResponsePart
  package typealias OutboundOut = HTTPResponsePart

  private let limits: ConnectionLimits
  /// The share of whoever the present answer is for.
  private var share: ByteShare
  private var isCounted = false
  /// The number of requests that were read to their end and have no answer yet; answers come in the order of requests.
  private var complete = 0
  /// Whether the connection ends with the present answer.
  private var isLast = false
  private var isLingering = false
  /// The bytes that wait for the client, and those that it has taken since the timer began.
  private var (pending, taken) = (0, 0)
  /// The bytes that a client must take in the time for answers: a slow line is given that time again, a byte a second is not.
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
    guard !isCounted, headTimer == nil else { return }
    isCounted = limits.count.enter()
    // One too many gets no time at all; it is closed behind the set-up that this is part of.
    headTimer = Self.close(context, in: isCounted ? limits.head : .zero)
    // Without it, the system takes megabytes at once, and then none for as long as a slow client needs for a third of them.
    let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: CInt(TCP_NOTSENT_LOWAT)))
    _ = context.channel.setOption(option, value: SocketOptionValue(Self.piece))
  }

  package func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  package func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    if isCounted { limits.count.leave() }
    isCounted = false
    headTimer?.cancel()
    answerTimer?.cancel()
  }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
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
    self.share = share
    promise?.succeed()
  }

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head):
      // What is no request has an answer, too, and no end.
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
      // Closed at once, with bytes unread, the connection would be reset, and the client might never see the answer.
      context.writeAndFlush(data, promise: promise)
      context.close(mode: .output, promise: nil)
      _ = Self.close(context, in: limits.linger)
    }
  }

  /// Writes a part of a body in pieces, so that it is seen how far the client is; its memory is free when all of it is taken.
  private func write(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
    let (all, last) = (bytes.readableBytes, promise ?? context.eventLoop.makePromise(of: Void.self))
    if pending == 0 { begin(answerOf: context) }
    pending += all
    let share = share
    share.add(all)
    last.futureResult.assumeIsolated().whenComplete { _ in share.add(-all) }
    var rest = bytes
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
    } else if taken >= Self.piece, isCounted {
      begin(answerOf: context)
    }
  }

  private static func close(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
    let channel = context.channel
    return context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}
