import Foundation
import Larder
import StandInServer
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebPhotosTests {
  /// The smallest PNG, of one transparent point.
  private static let picture = Data(
    base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

  @Test func photosThatAreKeptAreShownAndNothingIsFetched() async throws {
    let picture = try #require(Self.picture)
    let server = try PictureServer(["/pier.png": .whole(picture)])
    let url = try await server.start().appending(path: "pier.png")
    try await TestWeb.run { web in
      let spot = try TestWeb.spots()[0]
      let path = "/api/photos/\(spot.id.escaped)"
      #expect(try await web.get(path).text == "[]\n")
      // As `weather-spots photo` does in another process.
      let images = ImageDatabase.shared
      try await images.setUp(directory: web.directory.appending(path: "spots.sqlite-images"))
      try await web.storage.add(try await images.image(from: url), to: spot, at: Date())
      try await images.close()
      let asked = server.requests.count
      let list = try await web.get(path)
      #expect(list.json[0]?["kept"]?.boolValue == true)
      let image = try #require(list.json[0]?["image"]?.stringValue)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            let answer = try await web.get(image)
            #expect(answer.status == 200 && answer.body == picture)
            #expect(answer.headers["content-type"] == "image/png")
          }
        }
        try await group.waitForAll()
      }
      #expect(try await web.get("\(path)?url=http%3A%2F%2Fevil.example%2F").status == 404)
      #expect(server.requests.count == asked)
    }
    await server.stop()
  }
}
