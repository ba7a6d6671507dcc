import Foundation
import StandInServer
import Testing

/// The photo commands against a server of pictures on loopback.
@Suite(.timeLimit(.minutes(15))) struct PhotoTests {
  private static let point =
    Data(base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=") ?? Data()

  private let workspace = Workspace()

  private func photo(_ url: String, _ store: String, _ more: String...) async throws -> Run {
    try await weatherSpots(["photo", "brest", url, "--store", store, "--timeout", "300"] + more)
  }

  private func serving(_ answers: [String: PictureServer.Answer], _ body: (PictureServer, String) async throws -> Void) async throws {
    let server = try PictureServer(answers)
    let base = try await server.start().absoluteString
    do { try await body(server, base) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test(arguments: ["spots.sqlite", "spots.json"]) func aPhotoComesFromTheNetworkAndThenFromDisk(_ name: String) async throws {
    let store = try await workspace.store(name)
    try await serving(["/pier.jpg": .whole(Self.point)]) { (server, base) async throws in
      let url = "\(base)/pier.jpg"
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
      #expect(!FileManager.default.fileExists(atPath: store + "-images"))
      #expect(try await photo(url, store) == Run(output: "Brest: PNG, 68 bytes, from the network.\n"))
      #expect(try await photo(url, store) == Run(output: "Brest: PNG, 68 bytes, from disk.\n"))
      #expect(server.requests == ["/pier.jpg"])
      #expect(
        try await photo(url, store, "--json")
          == Run(output: #"{"bytes":68,"format":"png","kept":true,"origin":"disk","spot":"Brest @48.39,-4.49","url":"\#(url)"}"# + "\n"))
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "Brest  PNG, 68 bytes  \(url)\n"))
    }
    // Without a network, too.
    #expect(try await weatherSpots(["photos", "--store", store]).output.contains("PNG, 68 bytes"))
  }

  @Test func clearRemovesImagesAndListAndLeavesTheSpots() async throws {
    let store = try await workspace.store()
    try await serving(["/a": .whole(Self.point), "/b": .whole(Self.point)]) { (server, base) async throws in
      for path in ["/a", "/b"] { _ = try await photo(base + path, store) }
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
      let again = try await photo(base + "/a", store)
      #expect(again.output == "Brest: PNG, 68 bytes, from the network.\n")
      #expect(server.requests.count == 3)
    }
  }

  /// The files of images in the store's directory.
  private func images(_ store: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: store + "-images").filter { !$0.hasPrefix("blob-index") }
  }

  @Test func everyFailureIsOneLineAndNothingIsKept() async throws {
    let store = try await workspace.store()
    try await serving([
      "/500": .status(500), "/html": .whole(Data("<html>".utf8)), "/empty": .whole(Data()), "/cut": .truncated(Self.point, of: 1000),
      "/slow": .held(Self.point), "/large": .endless(Self.point + Data(count: 60_000), announced: nil),
    ]) { (server, base) async throws in
      for (path, reason) in [
        ("/500", "the server answered with status 500"), ("/404", "the server answered with status 404"),
        ("/html", "expected an image (PNG, JPEG, GIF, WebP, HEIC or AVIF), found something else"),
        ("/empty", "expected an image (PNG, JPEG, GIF, WebP, HEIC or AVIF), found something else"),
        ("/cut", "127.0.0.1 cannot be reached (the connection was lost)"),
        ("/slow", "127.0.0.1 did not answer within 0.5 s"), ("/large", "the image is larger than 16777216 bytes"),
      ] {
        let run = try await photo(base + path, store, "--timeout", path == "/slow" ? "0.5" : "300")
        #expect(run == Run.failure("no photo: \(reason)", 69))
      }
    }
    #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
    #expect(try images(store).isEmpty)
  }

  @Test func aPhotoIsWrittenToAFile() async throws {
    let store = try await workspace.store()
    try await serving(["/a": .whole(Self.point)]) { (_, base) async throws in
      let file = workspace.path("pier.png")
      #expect(try await photo(base + "/a", store, "--output", file).code == 0)
      #expect(try Data(contentsOf: URL(filePath: file)) == Self.point)
    }
  }

  @Test func aDamagedImageIsFetchedAgain() async throws {
    let store = try await workspace.store()
    try await serving(["/a": .whole(Self.point)]) { (server, base) async throws in
      _ = try await photo(base + "/a", store)
      let file = URL(filePath: "\(store)-images/\(try #require(images(store).first))")
      try Data("damage".utf8).write(to: file)  // a test's input
      #expect(try await photo(base + "/a", store) == Run(output: "Brest: PNG, 68 bytes, from the network.\n"))
      #expect(try Data(contentsOf: file) == Self.point || images(store).count == 1)
    }
  }

  @Test func theListGoesWithItsSpot() async throws {
    let store = try await workspace.store()
    try await serving(["/a": .whole(Self.point)]) { (_, base) async throws in
      _ = try await photo(base + "/a", store)
      #expect(try await weatherSpots(["remove", "brest", "--store", store]).code == 0)
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
    }
  }

  @Test func oneCommandAtATimeUsesThePhotos() async throws {
    let store = try await workspace.store()
    try await serving(["/slow": .held(Self.point), "/a": .whole(Self.point)]) { (server, base) async throws in
      async let first = photo(base + "/slow", store)
      await server.events.wait { !$0.requests.isEmpty }
      #expect(try await photo(base + "/a", store) == Run.failure("the photos are in use by another command", 75))
      server.release()
      #expect(try await first.code == 0)
    }
  }

  @Test func aPhotoOfASpotThatIsNotThereIsNotFetched() async throws {
    let store = try await workspace.store()
    try await serving(["/a": .whole(Self.point)]) { (server, base) async throws in
      #expect(try await weatherSpots(["photo", "nowhere", base + "/a", "--store", store, "--timeout", "300"]).code == 2)
      #expect(server.requests.isEmpty)
    }
  }
}
