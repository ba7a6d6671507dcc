import Foundation
import StandInServer
import Testing

@testable import WeatherSpotsKit

/// A white point.
let point =
  Data(
    base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=") ?? Data()

/// Answers of a script in place of a network, which can be held back.
final class ScriptedImages: ImageTransport {
  struct State: Sendable {
    fileprivate var answers: [String: Result<Data, ImageError>]
    fileprivate var isHolding = false
    fileprivate var held: [AsyncStream<Void>.Continuation] = []
    var paths: [String] = []
    var active = 0
    var mostActive = 0
    var cancelled = 0
  }
  let state: AwaitableState<State>

  /// Every path is answered with the white point, unless the script says something else.
  init(_ answers: [String: Result<Data, ImageError>] = [:]) { state = AwaitableState(State(answers: answers)) }

  var paths: [String] { state.value.paths }
  var active: Int { state.value.active }
  var mostActive: Int { state.value.mostActive }
  var cancelled: Int { state.value.cancelled }

  func answer(_ path: String, _ answer: Result<Data, ImageError>) { state.update { $0.answers[path] = answer } }

  func hold() { state.update { $0.isHolding = true } }

  func release() {
    let held = state.update { state in
      defer { state.held = [] }
      state.isHolding = false
      return state.held
    }
    for request in held { request.finish() }
  }

  nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data {
    let (gate, continuation) = AsyncStream.makeStream(of: Void.self)
    state.update { state in
      state.paths.append(url.path())
      state.active += 1
      state.mostActive = max(state.mostActive, state.active)
      if state.isHolding { state.held.append(continuation) } else { continuation.finish() }
    }
    for await _ in gate {}  // ends when it is released, or when the task is cancelled
    let isCancelled = Task.isCancelled
    let answer = state.update { state in
      state.active -= 1
      if isCancelled { state.cancelled += 1 }
      return state.answers[url.path()] ?? .success(point)
    }
    if isCancelled { throw .cancelled }
    return try answer.get()
  }
}

func picture(_ path: String) throws -> URL { try #require(URL(string: "http://test\(path)")) }

/// Yields until the condition holds; throws when the test runs out of time.
func until(_ condition: () -> Bool) async throws {
  while !condition() {
    try Task.checkCancellation()
    await Task.yield()
  }
}

/// The reason why there is no image, if there is none.
func reason(_ body: () async throws(ImageError) -> LoadedImage) async -> ImageError? {
  do throws(ImageError) {
    _ = try await body()
    return nil
  } catch {
    return error
  }
}
