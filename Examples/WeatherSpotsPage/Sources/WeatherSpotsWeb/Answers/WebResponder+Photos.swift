import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import NIOCore
import WeatherSpotsKit

extension WebResponder {
  /// Returns the list of a spot's photos, or one of them that is kept here; nothing is fetched from elsewhere.
  func photos(of id: String, _ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let spot = try stored(id)?.spot else { throw Self.noSpot }
    let album = try await storage.albums().find(by: id)?.photos ?? []
    guard let asked = try query.text("url") else { return try await list(album, of: spot, request) }
    guard let photo = album.first(where: { $0.url.absoluteString == asked }), let data = try await photos.photo(photo.url) else {
      throw HTTPProblem(.notFound, detail: "There is no such photo.")
    }
    return Response(
      status: .ok, headers: [.contentType: "image/\(photo.format.rawValue)", .cacheControl: "private, max-age=86400"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: data)))
  }

  private func list(_ album: [SpotAlbum.Photo], of spot: Spot, _ request: Request) async throws -> Response {
    let kept = album.isEmpty ? [] : await photos.keptKeys()
    let rows = album.map { photo -> JSONRow in
      let isKept = ImageFetcher.key(of: photo.url).map(kept.contains) ?? false
      let image = isKept ? "/api/photos/\(spot.id.escaped)?url=\(photo.url.absoluteString.escaped)" : nil
      return [
        "spot": spot.id, "name": spot.name, "url": photo.url, "format": photo.format, "bytes": photo.bytes,
        "addedAt": photo.addedAt.formatted(.iso8601), "kept": isKept, "image": image,
      ]
    }
    return try json(rows, request)
  }
}
