internal import HTTPTypes
package import NIOCore

/// Channel handler that keeps the bytes being parsed, so that a request that the parser refuses can be answered by its path.
///
/// It also limits the extensions of chunks, which the parser skips and which count to no limit of heads or bodies. It closes a connection
/// that sends more than ``mostUnparsed`` bytes of a body without any content.
package final class RequestBytes: ChannelInboundHandler, RemovableChannelHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = ByteBuffer

  /// Received bytes of which the parser has returned no part yet.
  ///
  /// `nil` outside of a read, so that an idle connection holds none.
  private var bytes: ByteBuffer?
  /// Number of bytes received since the parser last returned a part of the body.
  ///
  /// `nil` between bodies.
  private var unparsedCount: Int?
  /// Maximum number of bytes between two parts of a body.
  private static let mostUnparsed = 64 << 10
  /// Maximum length in bytes of a request line that is searched for a path.
  private static let longest = 16 << 10

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    unparsedCount = unparsedCount.map { $0 + buffer.readableBytes }
    // The parser and `RequestCheck` run within the next call, and `path()` is valid during it only.
    bytes = buffer
    context.fireChannelRead(data)
    bytes = nil
    if let unparsedCount, unparsedCount > Self.mostUnparsed { context.close(promise: nil) }
  }

  /// Drops the kept bytes after the parser has returned a part of them, since they no longer begin with a request.
  ///
  /// - Parameter isInBody: Whether more of a body follows.
  package func noteParsed(isInBody: Bool) { (bytes, unparsedCount) = (nil, isInBody ? 0 : nil) }

  /// Returns the path of the request that the bytes begin with, or `nil` if they do not begin with a whole request line.
  package func path() -> String? {
    guard let view = bytes?.readableBytesView.prefix(Self.longest), let end = view.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let line = view[..<end].last == UInt8(ascii: "\r") ? view[..<end].dropLast() : view[..<end]
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    // A method that is no token of RFC 9110 makes the request malformed (400). Only a valid unknown method gets 404 or 405.
    guard words.count == 3, HTTPRequest.Method(words[0]) != nil, words[1].hasPrefix("/"), words[2].hasPrefix("HTTP/1.") else { return nil }
    return words[1]
  }
}
