import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// The times of a connection, on a clock that only the test moves.
@Suite struct ConnectionGuardTests {
  /// A client that takes what is written to it when the test says so.
  private final class Client: ChannelOutboundHandler {
    typealias OutboundIn = HTTPResponsePart
    var waiting: [(bytes: Int, promise: EventLoopPromise<Void>?)] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if case .body(let bytes) = unwrapOutboundIn(data) { waiting.append((bytes.readableBytes, promise)) } else { promise?.succeed() }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      for next in waiting { next.promise?.fail(ChannelError.ioOnClosedChannel) }
      waiting = []
      context.close(mode: mode, promise: promise)
    }

    /// Takes so many pieces, or fewer where there are no more; returns the bytes.
    func take(_ pieces: Int) -> Int {
      let taken = Array(waiting.prefix(pieces))
      waiting.removeFirst(taken.count)
      for next in taken { next.promise?.succeed() }
      return taken.reduce(0) { $0 + $1.bytes }
    }
  }

  private let budget = ByteBudget(1 << 30)
  private let client = Client()
  private let channel: EmbeddedChannel

  init() throws {
    let limits = ConnectionLimits(count: ConnectionCount(most: 1), budget: budget, head: .seconds(10), answer: .seconds(60))
    channel = EmbeddedChannel(handlers: [client, ConnectionGuard(limits)])
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  private func request() throws {
    try channel.writeInbound(HTTPRequestPart.head(HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/")))
    try channel.writeInbound(HTTPRequestPart.end(nil))
  }

  private func answer(_ bytes: Int) {
    channel.write(HTTPResponsePart.head(HTTPResponse(status: .ok)), promise: nil)
    channel.write(HTTPResponsePart.body(ByteBuffer(repeating: 0, count: bytes)), promise: nil)
    channel.writeAndFlush(HTTPResponsePart.end(nil), promise: nil)
  }

  @Test func aLargeAnswerMayTakeLongWhereTheClientGoesOn() throws {
    try request()
    let size = 8 << 20
    answer(size)
    #expect(budget.bytes == size)
    var taken = 0
    while taken < size {
      channel.embeddedEventLoop.advanceTime(by: .seconds(59))
      try #require(channel.isActive)
      let more = client.take(1)
      try #require((1...ConnectionGuard.piece).contains(more))
      taken += more
      // The memory of the whole is held until the last piece is gone.
      #expect(budget.bytes == (taken == size ? 0 : size))
    }
    // Nothing is waited for any more.
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(channel.isActive)
    _ = try channel.finish()
  }

  @Test func aClientThatTakesNothingMoreIsCutOff() throws {
    try request()
    answer(8 << 20)
    #expect(client.take(3) > 0)
    channel.embeddedEventLoop.advanceTime(by: .seconds(59))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
    #expect(budget.bytes == 0)
  }

  @Test func bytesThatTrickleRenewNoTime() throws {
    try request()
    channel.write(HTTPResponsePart.head(HTTPResponse(status: .ok)), promise: nil)
    for _ in 0..<120 { channel.writeAndFlush(HTTPResponsePart.body(ByteBuffer(repeating: 0, count: 1)), promise: nil) }
    for _ in 0..<59 {
      channel.embeddedEventLoop.advanceTime(by: .seconds(1))
      try #require(client.take(1) == 1)
    }
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test func theFirstHeadEndsTheTimeForHeads() throws {
    channel.embeddedEventLoop.advanceTime(by: .seconds(9))
    try request()
    answer(3)
    #expect(client.take(1) == 3)
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(channel.isActive)
    _ = try channel.finish()
  }
}
