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
  /// Returns a stream of what changes: spots since a revision, and the forecast of one spot.
  func events(_ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let place = streams.enter() else {
      throw HTTPProblem(.serviceUnavailable, detail: "Expected fewer open event streams, found as many as there may be.", retryAfter: 5)
    }
    let since = try request.headers[.lastEventID].flatMap { UInt64($0) } ?? query.number("since").map { UInt64($0) }
    // Of a spot that is gone there is no forecast; that it is gone is told with the others.
    let spot = try query.text("forecast").flatMap { try stored($0)?.spot }
    // The revisions of another store, which was served at this address before, say nothing here.
    let isOther = try query.text("store").map { $0 != storeName } ?? false
    let events = merge(
      SpotEvents(
        spots: storage.spots, since: isOther ? Revision(.max) : since.map { Revision($0) }, rows: rows, gathering: options.gathering),
      ForecastEvents(weather: weather, spot: spot), Beats(interval: options.beat))
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store", .accelBuffering: "no"],
      body: ResponseBody { writer in
        defer { withExtendedLifetime(place) {} }
        var writer = writer
        try await writer.write(EventText.start)
        // It ends with its client or with the server, and neither is a failure.
        do {
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
