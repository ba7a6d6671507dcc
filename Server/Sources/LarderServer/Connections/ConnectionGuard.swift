internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// The keeper of one connection's bounds.
///
/// A connection ends when there are too many, when its first request does not come in time, when the client does not take what is sent to
/// it, and behind an answer to a request whose body was not read to its end: what follows could not be told from the rest of that body.
/// The time between two requests is Hummingbird's to bound.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let limits: ConnectionLimits
  private var isCounted = false
  private var isReading = false
  /// Whether the connection ends with the present answer.
  private var isLast = false
  private var isLingering = false
  private var pending = 0
  private var headTimer: Scheduled<Void>?
  private var answerTimer: Scheduled<Void>?

  init(_ limits: ConnectionLimits) { self.limits = limits }

  func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { begin(context) } }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard !isCounted, headTimer == nil else { return }
    isCounted = limits.count.enter()
    // One too many gets no time at all; it is closed behind the set-up that this is part of.
    headTimer = Self.close(context, in: isCounted ? limits.head : .zero)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    if isCounted { limits.count.leave() }
    isCounted = false
    headTimer?.cancel()
    answerTimer?.cancel()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isLingering { return }
    switch unwrapInboundIn(data) {
    case .head:
      headTimer?.cancel()
      isReading = true
    case .body: break
    case .end: isReading = false
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head):
      guard isReading, head.status.kind != .informational else { return context.write(data, promise: promise) }
      isLast = true
      head.headerFields[.connection] = "close"
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .body(let bytes):
      let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
      hold(bytes.readableBytes, context)
      promise.futureResult.assumeIsolated().whenComplete { _ in self.release(bytes.readableBytes) }
      context.write(data, promise: promise)
    case .end:
      guard isLast else { return context.write(data, promise: promise) }
      isLingering = true
      // Closed at once, with bytes unread, the connection would be reset, and the client might never see the answer.
      context.writeAndFlush(data, promise: promise)
      context.close(mode: .output, promise: nil)
      _ = Self.close(context, in: limits.linger)
    }
  }

  private func hold(_ count: Int, _ context: ChannelHandlerContext) {
    if pending == 0 { answerTimer = Self.close(context, in: limits.answer) }
    pending += count
    limits.budget.add(count)
  }

  private func release(_ count: Int) {
    pending -= count
    limits.budget.add(-count)
    if pending == 0 { answerTimer?.cancel() }
  }

  private static func close(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
    let channel = context.channel
    return context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}
