import Foundation
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// A white point.
let point =
  Data(base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=") ?? Data()

/// Answers of a script in place of a network, which can be held back.
///
/// Every path is answered with the white point, unless the script says something else.
final class ScriptedImages: ImageTransport {
  let gate = CallGate(isOpen: true)
  private let answers = Mutex<[String: Result<Data, ImageError>]>([:])
  private let asked = Mutex<[String]>([])

  var paths: [String] { asked.withLock { $0 } }
  var calls: AwaitableState<CallGate.Calls> { gate.calls }

  func answer(_ path: String, _ answer: Result<Data, ImageError>) { answers.withLock { $0[path] = answer } }

  nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data {
    asked.withLock { $0.append(url.path()) }
    guard await gate.pass() else { throw .cancelled }
    return try answers.withLock { $0[url.path()] ?? .success(point) }.get()
  }
}

func picture(_ path: String) throws -> URL { try #require(URL(string: "http://test\(path)")) }

/// The reason why there is no image, if there is none.
func reason(_ body: () async throws(ImageError) -> LoadedImage) async -> ImageError? {
  do throws(ImageError) {
    _ = try await body()
    return nil
  } catch {
    return error
  }
}
