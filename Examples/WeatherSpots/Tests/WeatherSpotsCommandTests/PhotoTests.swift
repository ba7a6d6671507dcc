import Foundation
import StandInServer
import Testing

/// The photo commands against a server of pictures on loopback.
@Suite(.timeLimit(.minutes(15))) struct PhotoTests {
  private static let point =
    Data(
      base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=") ?? Data()

  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  private func store(_ name: String = "spots.sqlite") async throws -> String {
    let store = workspace.path(name)
    let run = try await weatherSpots(["add", "Brest", "48.39", "-4.49", "--zone", "Europe/Paris", "--store", store])
    #expect(run.code == 0)
    return store
  }

  private func serving(
    _ answers: [String: PictureServer.Answer], _ body: (PictureServer, String) async throws -> Void
  ) async throws {
    let server = try PictureServer(answers)
    let base = try await server.start().absoluteString
    do { try await body(server, base) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test(arguments: ["spots.sqlite", "spots.json"]) func aPhotoComesFromTheNetworkAndThenFromDisk(_ name: String) async throws {
    let store = try await store(name)
    try await serving(["/pier.jpg": .whole(Self.point)]) { (server, base) async throws in
      let url = "\(base)/pier.jpg"
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
      #expect(!FileManager.default.fileExists(atPath: store + "-images"))
      #expect(
        try await weatherSpots(["photo", "brest", url, "--store", store, "--timeout", "300"])
          == Run(output: "Brest: PNG, 68 bytes, from the network.\n"))
      #expect(
        try await weatherSpots(["photo", "brest", url, "--store", store, "--timeout", "300"])
          == Run(output: "Brest: PNG, 68 bytes, from disk.\n"))
      #expect(server.requests == ["/pier.jpg"])
      #expect(
        try await weatherSpots(["photo", "brest", url, "--store", store, "--timeout", "300", "--json"])
          == Run(
            output: """
              {"bytes":68,"format":"png","kept":true,"origin":"disk","spot":"Brest @48.39,-4.49","url":"\(url)"}

              """))
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "Brest  PNG, 68 bytes  \(url)\n"))
    }
    // Without a network, too.
    #expect(try await weatherSpots(["photos", "--store", store]).output.contains("PNG, 68 bytes"))
  }

  @Test func clearRemovesImagesAndListAndLeavesTheSpots() async throws {
    let store = try await store()
    try await serving(["/a": .whole(Self.point), "/b": .whole(Self.point)]) { (server, base) async throws in
      for path in ["/a", "/b"] { _ = try await weatherSpots(["photo", "brest", base + path, "--store", store, "--timeout", "300"]) }
      let listed = try await weatherSpots(["photos", "--store", store, "--json"])
      let rows = try #require(try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]])
      #expect(rows.map { $0["url"] as? String } == [base + "/a", base + "/b"])
      #expect(rows.allSatisfy { $0["kept"] as? Bool == true && $0["spot"] as? String == "Brest @48.39,-4.49" })
      #expect(try images(store).count == 2)
      #expect(try await weatherSpots(["photos", "clear", "--store", store]) == Run(output: "Removed 2 photos.\n"))
      #expect(try images(store).isEmpty)
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
      #expect(try await weatherSpots(["photos", "clear", "--store", store, "--json"]) == Run(output: "{\"removed\":0}\n"))
      #expect(try await weatherSpots(["show", "brest", "--store", store]).code == 0)
      let again = try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300"])
      #expect(again.output == "Brest: PNG, 68 bytes, from the network.\n")
      #expect(server.requests.count == 3)
    }
  }

  /// The files of images in the store's directory.
  private func images(_ store: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: store + "-images").filter { !$0.hasPrefix("blob-index") }
  }

  @Test func everyFailureIsOneLineAndNothingIsKept() async throws {
    let store = try await store()
    try await serving([
      "/500": .status(500), "/html": .whole(Data("<html>".utf8)), "/cut": .truncated(Self.point, of: 1000), "/slow": .held(Self.point),
      "/large": .endless(Self.point + Data(count: 60_000), announced: nil),
    ]) { (server, base) async throws in
      for (path, reason) in [
        ("/500", "the server answered with status 500"), ("/404", "the server answered with status 404"),
        ("/html", "expected an image (PNG, JPEG, GIF, WebP, HEIC or AVIF), found something else"),
        ("/cut", "127.0.0.1 cannot be reached (the connection was lost)"),
        ("/slow", "127.0.0.1 did not answer within 0.5 s"), ("/large", "the image is larger than 16777216 bytes"),
      ] {
        let run = try await weatherSpots(
          ["photo", "brest", base + path, "--store", store, "--timeout", path == "/slow" ? "0.5" : "300"])
        #expect(run == Run(output: "", errors: "weather-spots: no photo: \(reason)\n", code: 69))
      }
    }
    #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
    #expect(try images(store).isEmpty)
  }

  @Test func aPhotoIsWrittenToAFile() async throws {
    let store = try await store()
    try await serving(["/a": .whole(Self.point)]) { (_, base) async throws in
      let file = workspace.path("pier.png")
      #expect(try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300", "--output", file]).code == 0)
      #expect(try Data(contentsOf: URL(filePath: file)) == Self.point)
    }
  }

  @Test func aDamagedImageIsFetchedAgain() async throws {
    let store = try await store()
    try await serving(["/a": .whole(Self.point)]) { (server, base) async throws in
      _ = try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300"])
      let file = URL(filePath: "\(store)-images/\(try #require(images(store).first))")
      try Data("damage".utf8).write(to: file)  // a test's input
      #expect(
        try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300"])
          == Run(output: "Brest: PNG, 68 bytes, from the network.\n"))
      #expect(try Data(contentsOf: file) == Self.point || images(store).count == 1)
    }
  }

  @Test func theListGoesWithItsSpot() async throws {
    let store = try await store()
    try await serving(["/a": .whole(Self.point)]) { (_, base) async throws in
      _ = try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300"])
      #expect(try await weatherSpots(["remove", "brest", "--store", store]).code == 0)
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
    }
  }

  @Test func oneCommandAtATimeUsesThePhotos() async throws {
    let store = try await store()
    try await serving(["/slow": .held(Self.point), "/a": .whole(Self.point)]) { (server, base) async throws in
      async let first = weatherSpots(["photo", "brest", base + "/slow", "--store", store, "--timeout", "300"])
      await server.events.wait { !$0.requests.isEmpty }
      #expect(
        try await weatherSpots(["photo", "brest", base + "/a", "--store", store, "--timeout", "300"])
          == Run(output: "", errors: "weather-spots: the photos are in use by another command\n", code: 75))
      server.release()
      #expect(try await first.code == 0)
    }
  }

  @Test func aPhotoOfASpotThatIsNotThereIsNotFetched() async throws {
    let store = try await store()
    try await serving(["/a": .whole(Self.point)]) { (server, base) async throws in
      #expect(try await weatherSpots(["photo", "nowhere", base + "/a", "--store", store, "--timeout", "300"]).code == 2)
      #expect(server.requests.isEmpty)
    }
  }
}
