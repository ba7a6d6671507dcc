import ArgumentParser
import Foundation
import Larder
import LarderBlobs
import WeatherSpotsKit

struct Photos: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the photos of all spots, or removes them.",
    discussion: """
      `weather-spots photos` lists them by spot. A photo that is "not kept" had to make room for others and is fetched again when it is asked \
      for. `weather-spots photos clear` removes every image and the list of them; the spots stay.
      """)

  enum Action: String, CaseIterable, ExpressibleByArgument { case clear }

  @Argument(help: ArgumentHelp("An action instead of listing: clear.", valueName: "action"))
  var action: Action?

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    if action == .clear {
      let count = try await globals.withStore { storage in try await self.clear(storage) }
      if globals.json { try writeJSON(["removed": count]) } else { try writeText("Removed \(count) photos.\n") }
    } else {
      let rows = try await globals.withStore { storage in try await self.rows(storage) }
      if globals.json { try writeJSON(rows.map(\.json)) } else { try writeText(Self.text(rows)) }
    }
  }

  private func clear(_ storage: SpotStore) async throws -> Int {
    let albums = try await storage.albums()
    // Counted first, since nothing is left to count afterwards.
    let count = try await albums.loadAll().reduce(0) { $0 + $1.photos.count }
    // Images before the list: after an interruption the list still shows that photos were there, as "not kept".
    try await globals.withImages { images in try await images.clear() }
    // An undecodable album must go too, or `clear` would leave a list that nothing can show.
    try await albums.replaceAll(with: [], discardingUndecodable: true)
    return count
  }

  private func rows(_ storage: SpotStore) async throws -> [Row] {
    let albums = try await storage.albums().loadAll()
    // Without photos the image cache is not opened, which would create its directory.
    guard !albums.isEmpty else { return [] }
    let kept = Set(try await globals.withImages { images in try await images.contents() }.map(\.key))
    var rows: [Row] = []
    for album in albums {
      // An album may outlive its spot if sync removed the spot. Its id then stands for the name.
      let name = try await storage.spots.find(by: album.id)?.name ?? album.id
      rows += album.photos.map { photo in
        Row(spot: album.id, name: name, photo: photo, isKept: ImageFetcher.key(of: photo.url).map(kept.contains) ?? false)
      }
    }
    return rows
  }

  private static func text(_ rows: [Row]) -> String {
    guard !rows.isEmpty else { return "No photos.\n" }
    let width = min(40, rows.map(\.name.count).max() ?? 0)
    return rows.map { row in
      let state = row.isKept ? "\(row.photo.format.name), \(row.photo.bytes) bytes" : "not kept"
      return
        "\(row.name.padding(toLength: max(width, row.name.count), withPad: " ", startingAt: 0))  \(state)  \(row.photo.url.absoluteString)\n"
    }.joined()
  }

  /// One listed photo with its spot.
  private struct Row {
    let spot: String
    let name: String
    let photo: SpotAlbum.Photo
    let isKept: Bool

    var json: JSONRow {
      [
        "spot": spot, "name": name, "url": photo.url, "format": photo.format, "bytes": photo.bytes,
        "addedAt": photo.addedAt.formatted(.iso8601), "kept": isKept,
      ]
    }
  }
}
