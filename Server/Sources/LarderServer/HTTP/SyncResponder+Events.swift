internal import BoundedHTTP
internal import HTTPTypes
internal import Hummingbird
internal import LarderWire
internal import NIOCore

extension SyncResponder {
  /// Returns the newest commits of a scope as server-sent events: the present one at once, then each newer one.
  func events(
    of scope: String, by identity: Identity, request: Request, token: String?, _ context: ConnectionContext
  ) async throws(SyncProblem) -> Response {
    let seat = try seats.take(for: share(of: identity).identity)
    // Subscribed before the newest commit is read, so that no commit falls between the two.
    let subscription = Subscription(hub.signs(of: scope, isStream: true), seat)
    let signs = subscription.signs
    let head = try await store.heads(of: [scope])[scope] ?? 0
    // Another process may have made this commit, of which the other streams have no event yet.
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
        // A client that has the present commit gets a comment, which shows at once that the stream is open.
        try await writer.write(known == head ? Self.comment : EventSink.event(head))
        try await request.body.consumeWithInboundCloseHandler { _ in
          hub.connect(signs, to: sink)
          // The hub writes commits to the sink itself, so only heartbeats arrive here.
          for await case .beat in signs.signs {
            // A token that is no longer valid ends its streams at their next heartbeat.
            if let token, try await !authorizer.identity(of: token).access(to: scope).contains(.read) { break }
            try await writer.write(Self.comment)
          }
        } onInboundClosed: {
          signs.end()
        }
        // No event may follow the last chunk of the response.
        sink.end()
        try await writer.finish(nil)
      })
  }

  /// Announcements for a stream, which end at the latest with the response: a client may be gone before its first byte.
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
  // Both names are valid, so the fallbacks are never used.
  fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .eTag
  // nginx holds events back unless this field forbids it.
  fileprivate static let accelBuffering = HTTPField.Name("X-Accel-Buffering") ?? .eTag
}
