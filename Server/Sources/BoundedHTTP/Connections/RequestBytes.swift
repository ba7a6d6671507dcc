internal import HTTPTypes
package import NIOCore

/// The bytes that are just being read, for whoever must say what is wrong with a request that the parser does not take.
///
/// It also bounds the extensions of chunks. The parser skips them, and they count to no limit of heads or bodies: a connection that sends
/// more than ``mostUnparsed`` bytes of a body without any content is closed.
package final class RequestBytes: ChannelInboundHandler, RemovableChannelHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = ByteBuffer

  /// The bytes, while they are parsed, and only while nothing of them was: a connection that waits keeps none.
  private var bytes: ByteBuffer?
  /// The number of bytes received since the parser last returned a part of the body.
  ///
  /// `nil` between bodies.
  private var unparsedCount: Int?
  /// The most bytes that may come between two parts of a body.
  private static let mostUnparsed = 64 << 10
  /// The longest line that is looked at.
  private static let longest = 16 << 10

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    unparsedCount = unparsedCount.map { $0 + buffer.readableBytes }
    bytes = buffer
    context.fireChannelRead(data)
    bytes = nil
    if let unparsedCount, unparsedCount > Self.mostUnparsed { context.close(promise: nil) }
  }

  /// Notes that the parser has found something in the bytes, which begin with no request of its own any more.
  /// - Parameter isInBody: Whether more of a body follows.
  package func noteParsed(isInBody: Bool) { (bytes, unparsedCount) = (nil, isInBody ? 0 : nil) }

  /// Returns the path of a request that the bytes begin with; `nil` where they do not begin with a whole line of one.
  package func path() -> String? {
    guard let view = bytes?.readableBytesView.prefix(Self.longest), let end = view.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let line = view[..<end].last == UInt8(ascii: "\r") ? view[..<end].dropLast() : view[..<end]
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 3, HTTPRequest.Method(words[0]) != nil, words[1].hasPrefix("/"), words[2].hasPrefix("HTTP/1.") else { return nil }
    return words[1]
  }
}
