import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import NIOCore
import WeatherSpotsKit

extension WebResponder {
  /// Returns the list of a spot's photos, or with `url` the bytes of one that is stored.
  ///
  /// No photo is fetched from another server.
  func photos(of id: String, _ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let spot = try stored(id)?.spot else { throw Self.noSpot }
    let album = try await storage.albums().find(by: id)?.photos ?? []
    guard let asked = try query.text("url") else { return try await list(album, of: spot, request) }
    // Only an address in the album is looked up, so a client cannot read photos of other spots through this one.
    guard let photo = album.first(where: { $0.url.absoluteString == asked }), let data = try await photos.photo(photo.url) else {
      throw HTTPProblem(.notFound, detail: "There is no such photo.")
    }
    return Response(
      status: .ok, headers: [.contentType: "image/\(photo.format.rawValue)", .cacheControl: "private, max-age=86400"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: data)))
  }

  private func list(_ album: [SpotAlbum.Photo], of spot: Spot, _ request: Request) async throws -> Response {
    // An empty album needs no keys, and the directory stays closed for it.
    let kept = album.isEmpty ? [] : await photos.keptKeys()
    let rows = album.map { photo -> JSONRow in
      let isKept = ImageFetcher.key(of: photo.url).map(kept.contains) ?? false
      // Without the file the row has no address, since the page would show a broken image.
      let image = isKept ? "/api/photos/\(spot.id.escaped)?url=\(photo.url.absoluteString.escaped)" : nil
      return [
        "spot": spot.id, "name": spot.name, "url": photo.url, "format": photo.format, "bytes": photo.bytes,
        "addedAt": photo.addedAt.formatted(.iso8601), "kept": isKept, "image": image,
      ]
    }
    return try json(rows, request)
  }
}
