internal import BoundedHTTP
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import NIOCore

extension SyncResponder {
  /// Returns the stream of the newest commits of a scope, as server-sent events: the present one at once, then each newer one.
  func events(
    of scope: String, by identity: Identity, request: Request, token: String?, _ context: ConnectionContext
  ) async throws(SyncProblem) -> Response {
    let seat = try seats.take(for: share(of: identity).identity)
    let subscription = Subscription(hub.signs(of: scope, isStream: true), seat)
    let signs = subscription.signs
    let head = try await store.heads(of: [scope])[scope] ?? 0
    hub.publish(head, of: scope)
    let known = request.headers[HTTPField.Name.lastEventID].flatMap { Int($0) }
    let (authorizer, hub, sink) = (authorizer, hub, EventSink(context.channel, sent: head))
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store", HTTPField.Name.accelBuffering: "no"],
      body: ResponseBody { writer in
        defer {
          sink.end()
          subscription.end()
        }
        var writer = writer
        // A client that knows the present commit gets a comment, so that it sees at once that the stream is open.
        try await writer.write(known == head ? Self.comment : EventSink.event(head))
        try await request.body.consumeWithInboundCloseHandler { _ in
          hub.connect(signs, to: sink)
          for await case .beat in signs.signs {
            // A token that is not valid any more ends its streams with the next beat.
            if let token, try await !authorizer.identity(of: token).access(to: scope).contains(.read) { break }
            try await writer.write(Self.comment)
          }
        } onInboundClosed: {
          signs.end()
        }
        sink.end()
        try await writer.finish(nil)
      })
  }

  /// The signs of a stream, which end at the latest with the answer that has them: a client may be gone before its first byte.
  private final class Subscription: Sendable {
    let signs: HeadSigns
    private let seat: StreamSeats.Seat

    init(_ signs: HeadSigns, _ seat: StreamSeats.Seat) { (self.signs, self.seat) = (signs, seat) }
    func end() { signs.end() }
    deinit { signs.end() }
  }

  private static let comment = ByteBuffer(string: ":\n\n")
}

extension HTTPField.Name {
  fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .eTag
  fileprivate static let accelBuffering = HTTPField.Name("X-Accel-Buffering") ?? .eTag
}
