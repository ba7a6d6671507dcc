internal import HTTPTypes
package import Hummingbird
package import NIOCore
internal import NIOHTTPTypes

/// The body of a request with `Expect: 100-continue`, which is asked for when it is read: none that is refused by its head is sent.
package struct AwaitedBody: AsyncSequence, Sendable {
  private let body: RequestBody
  private let channel: any Channel

  /// Returns a request whose body is asked for where its client waits for that.
  package static func expected(_ request: Request, _ channel: any Channel) -> Request {
    // Others have no body, and the end of an event stream is waited for where a body would be read.
    guard [.post, .put].contains(request.method), request.headers[.expect]?.lowercased() == "100-continue" else { return request }
    var request = request
    request.body = RequestBody(asyncSequence: AwaitedBody(body: request.body, channel: channel))
    return request
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(channel: channel, parts: body.makeAsyncIterator()) }

  /// The parts of the body.
  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let channel: any Channel
    fileprivate var parts: RequestBody.AsyncIterator
    private var isAskedFor = false

    fileprivate init(channel: any Channel, parts: RequestBody.AsyncIterator) { (self.channel, self.parts) = (channel, parts) }

    @concurrent package mutating func next() async throws -> ByteBuffer? {
      if !isAskedFor {
        isAskedFor = true
        try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
      }
      return try await parts.next()
    }
  }
}
