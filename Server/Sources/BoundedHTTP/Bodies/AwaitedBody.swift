internal import HTTPTypes
package import Hummingbird
package import NIOCore
internal import NIOHTTPTypes

/// Body of a request with `Expect: 100-continue`, which sends the interim response only when it is read.
///
/// A request that is refused because of its head therefore never transmits its body.
package struct AwaitedBody: AsyncSequence, Sendable {
  private let body: RequestBody
  private let channel: any Channel

  /// Returns the request, with its body wrapped if the client waits for `100 Continue`.
  package static func expected(_ request: Request, _ channel: any Channel) -> Request {
    // Other methods have no body. The GET of an event stream reads its body to see the connection end, and must send no 100 for that.
    guard [.post, .put].contains(request.method), request.headers[.expect]?.lowercased() == "100-continue" else { return request }
    var request = request
    request.body = RequestBody(asyncSequence: AwaitedBody(body: request.body, channel: channel))
    return request
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(channel: channel, parts: body.makeAsyncIterator()) }

  /// Iterator over the parts of the body.
  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let channel: any Channel
    fileprivate var parts: RequestBody.AsyncIterator
    private var isAskedFor = false

    fileprivate init(channel: any Channel, parts: RequestBody.AsyncIterator) { (self.channel, self.parts) = (channel, parts) }

    @concurrent package mutating func next() async throws -> ByteBuffer? {
      if !isAskedFor {
        // Once for each body: after the first 100 the client sends all of it.
        isAskedFor = true
        try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
      }
      return try await parts.next()
    }
  }
}
