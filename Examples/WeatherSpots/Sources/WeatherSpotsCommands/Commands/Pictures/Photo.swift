import ArgumentParser
public import Foundation
import Larder
import LarderBlobs
import WeatherSpotsKit

struct Photo: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fetches a photo of a spot and keeps it.",
    discussion: """
      A photo that was fetched before comes from this machine; the output says from where. Images are PNG, JPEG, GIF, WebP, HEIC and AVIF of \
      at most 16 MiB, by their first bytes. They are kept beside the store, 200 MB of them, and those used longest ago go first; `photos` \
      lists them. Without an answer of the server, the exit code is 69. Example: weather-spots photo Brest https://example.org/pier.jpg
      """)

  @Argument(help: "The name or the id of the spot.")
  var name: String

  @Argument(help: "The URL of the photo, with http or https.", transform: Self.url)
  var url: URL

  @Option(help: ArgumentHelp("Also write the photo to a file.", valueName: "file"))
  var output: String?

  @Option(help: ArgumentHelp("The time limit of the download.", valueName: "seconds"))
  var timeout = 30.0

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (0.1...600).contains(timeout) else { throw ValidationError("--timeout takes 0.1 to 600 seconds.") }
  }

  func execute() async throws {
    // A bad output path is reported before the download.
    let file = try output.map { try OutputFile($0, beside: try globals.place) }
    let (spot, image) = try await globals.withStore { storage in
      let spot = try await storage.spot(named: name)
      let image = try await globals.withImages(timeout: .milliseconds(Int(timeout * 1000))) { images in try await images.image(from: url)
      }
      // A photo without room on the disk is shown but not listed, since the list promises that it was kept.
      if image.storageError == nil { try await storage.add(image, to: spot, at: Date()) }
      return (spot, image)
    }
    try file?.write(image.data)
    if globals.json {
      let isKept = image.storageError == nil
      let (format, bytes) = (image.format, image.data.count)
      try writeJSON(
        ["spot": spot.id, "url": image.url, "format": format, "bytes": bytes, "origin": image.origin, "kept": isKept] as JSONRow)
    } else {
      try writeText("\(spot.name): \(image.format.name), \(image.data.count) bytes, from \(image.origin.words).\n")
    }
    if let error = image.storageError {
      let failure = Failure(error)
      note("the photo is not kept: \(failure.message)")
      // The photo was written where the user wanted it. Only the exit code says that it is not cached.
      throw ExitCode(failure.outcome.rawValue)
    }
  }

  private static func url(_ text: String) throws -> URL {
    // The key of the cache exists only for http and https, so other schemes are refused here.
    guard let url = URL(string: text), ImageFetcher.key(of: url) != nil else { throw ValidationError("\(ImageError.invalidURL)") }
    return url
  }
}

extension LoadedImage.Origin {
  var words: String { self == .network ? "the network" : rawValue }
}

extension GlobalOptions {
  /// Returns the directory of the image cache, which lies beside the store.
  public func imageDirectory() throws -> URL {
    let file = try place
    return file.deletingLastPathComponent().appending(path: file.lastPathComponent + "-images", directoryHint: .isDirectory)
  }

  /// Opens the image cache, runs `body` on it and closes it.
  func withImages<Result: Sendable>(
    timeout: Duration = .seconds(30), _ body: (ImageDatabase) async throws -> Result
  ) async throws -> Result {
    // Shared, because one process may open the directory only once.
    let images = ImageDatabase.shared
    let directory = try imageDirectory()
    do throws(RepositoryError) {
      try await images.setUp(directory: directory, limits: .init(diskBytes: 200_000_000), fetching: .init(timeout: timeout))
    } catch {
      // The general message names the store, which is not the one that is locked.
      throw error.code == .locked ? Failure(.storeLocked, "the photos are in use by another command") : Failure(error)
    }
    let result: Result
    do { result = try await body(images) } catch {
      // The error of the command is the one to throw.
      do { try await images.close() } catch { note("closing the photos failed too: \(error)") }
      throw error
    }
    try await images.close()
    return result
  }
}
