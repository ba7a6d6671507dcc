import AsyncAlgorithms
import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import NIOCore
import ServiceLifecycle
import WeatherSpotsKit

extension WebResponder {
  /// Returns a stream of server-sent events: changes of spots since a revision, and updates of the forecast of one spot.
  func events(_ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let place = streams.enter() else {
      throw HTTPProblem(.serviceUnavailable, detail: "Expected fewer open event streams, found as many as there may be.", retryAfter: 5)
    }
    // The header goes first: a browser that reconnects sends it with the old address, whose `since` is older.
    let since = try request.headers[.lastEventID].flatMap { UInt64($0) } ?? query.number("since").map { UInt64($0) }
    // A removed spot has no forecast. The stream then has no events of it, and its removal is among the changes of spots.
    let spot = try query.text("forecast").flatMap { try stored($0)?.spot }
    // Revisions of another store mean nothing here. No commit has `Revision(.max)`, so such a stream begins with `reset`.
    let isOther = try query.text("store").map { $0 != storeName } ?? false
    let events = merge(
      SpotEvents(
        spots: storage.spots, since: isOther ? Revision(.max) : since.map { Revision($0) }, rows: rows, gathering: options.gathering),
      ForecastEvents(weather: weather, spot: spot), Beats(interval: options.beat))
    return Response(
      // `X-Accel-Buffering: no` keeps nginx from collecting events before it passes them on.
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store", .accelBuffering: "no"],
      body: ResponseBody { writer in
        // Without a use at the end, Swift may release the place while the stream still runs.
        defer { withExtendedLifetime(place) {} }
        var writer = writer
        try await writer.write(EventText.start)
        // A stream ends with its client or with the server. Both may throw here, and neither is a failure.
        do {
          // A closed connection ends the loop at once, and not only at the next write.
          try await request.body.consumeWithCancellationOnInboundClose { _ in
            for try await event in events.cancelOnGracefulShutdown() { try await writer.write(event) }
          }
        } catch {}
        try await writer.finish(nil)
      })
  }
}

extension HTTPField.Name {
  fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .eTag
  fileprivate static let accelBuffering = HTTPField.Name("X-Accel-Buffering") ?? .eTag
}
