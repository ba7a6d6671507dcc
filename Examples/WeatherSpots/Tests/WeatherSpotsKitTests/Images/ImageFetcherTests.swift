import Foundation
import Larder
import LarderBlobs
import LarderTesting
import StandInServer
import Testing

@testable import WeatherSpotsKit

@Suite(.serialized, .timeLimit(.minutes(15))) struct ImageFetcherTests {
  private let files = SimulatedFileSystem()
  private let network = ScriptedImages()

  private func fetcher(_ limits: ImageFetcher.Limits = .init()) async throws -> (ImageFetcher, BlobStore) {
    let store = try await BlobStore(directory: URL(filePath: "/images"), fileSystem: files)
    return (ImageFetcher(store: store, transport: network, limits: limits), store)
  }

  @Test func anImageComesFromMemoryThenDiskThenTheNetwork() async throws {
    let (images, store) = try await fetcher()
    let first = try await images.image(from: picture("/a"))
    #expect(first.origin == .network && first.data == point && first.format == .png && first.storageError == nil)
    #expect(try await images.image(from: picture("/a")).origin == .memory)
    store.removeFromMemory()
    #expect(try await images.image(from: picture("/a")).origin == .disk)
    #expect(try await images.image(from: picture("/a")).origin == .memory)
    #expect(try await images.image(from: picture("/b")).origin == .network)
    #expect(network.paths == ["/a", "/b"])
  }

  @Test(arguments: [
    "", "pier.jpg", "/pier.jpg", "ftp://test/pier.jpg", "file:///etc/passwd", "http://", "https:///pier.jpg", "data:image/png;base64,AAAA",
    "javascript:alert(1)", "mailto:a@b",
  ])
  func onlyURLsOfHTTPAreFetched(_ text: String) async throws {
    let url = try #require(URL(string: text.isEmpty ? "#" : text))
    let (images, _) = try await fetcher()
    #expect(await reason { () throws(ImageError) in try await images.image(from: url) } == .invalidURL)
    #expect(network.paths.isEmpty)
  }

  @Test func whatAServerNeverSeesMakesNoOtherImage() async throws {
    let (images, _) = try await fetcher()
    for text in ["http://test/a", "HTTP://test/a#top"] { _ = try await images.image(from: #require(URL(string: text))) }
    #expect(network.paths.count == 1)
  }

  @Test(arguments: [
    ImageError.http(status: 404), .http(status: 500), .transport(.unreachable(host: "test", code: -1004)), .tooLarge(limit: 7), .cancelled,
  ])
  func aFailureIsNotKept(_ failure: ImageError) async throws {
    let (images, store) = try await fetcher()
    let url = try picture("/a")
    network.answer("/a", .failure(failure))
    #expect(await reason { () throws(ImageError) in try await images.image(from: url) } == failure)
    #expect(store.persistedKeys.isEmpty)
    #expect(await store.usage == .init())
    network.answer("/a", .success(point))
    #expect(try await images.image(from: url).origin == .network)
    #expect(network.paths.count == 2)
  }

  @Test func whatIsNotAnImageIsNotKept() async throws {
    let (images, store) = try await fetcher()
    let url = try picture("/a")
    for body in ["<svg/>", "<!doctype html><html></html>", ""] {
      network.answer("/a", .success(Data(body.utf8)))
      #expect(await reason { () throws(ImageError) in try await images.image(from: url) } == .notAnImage)
    }
    #expect(store.persistedKeys.isEmpty && files.paths.allSatisfy { $0.contains("blob-index") })
  }

  @Test func tenThousandCallersMakeOneRequest() async throws {
    let (images, _) = try await fetcher()
    let url = try picture("/a")
    network.gate.close()
    let network = network
    let origins = await withTaskGroup(of: LoadedImage.Origin?.self) { group in
      for _ in 0..<10_000 {
        group.addTask { do { return try await images.image(from: url).origin } catch { return nil } }
      }
      group.addTask {
        while images.waiterCount < 5_000, !Task.isCancelled { await Task.yield() }
        network.gate.open()
        return .disk
      }
      return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    #expect(network.paths == ["/a"])
    #expect(origins[nil] == nil && origins.values.reduce(0, +) == 10_001)
    #expect(origins[.network, default: 0] >= 5_000)
  }

  @Test func theRequestGoesOnUntilTheLastCallerLeaves() async throws {
    let (images, store) = try await fetcher()
    let url = try picture("/a")
    network.gate.close()
    let callers = (0..<3).map { _ in Task { await reason { () throws(ImageError) in try await images.image(from: url) } } }
    await network.calls.wait { $0.active == 1 }
    try await until { images.waiterCount == 3 }
    for (number, caller) in callers.enumerated() {
      #expect(network.calls.value.cancelled == 0 && network.calls.value.active == 1)
      caller.cancel()
      #expect(await caller.value == .cancelled)
      #expect(images.waiterCount == 2 - number)
    }
    await network.calls.wait { $0.cancelled == 1 }
    network.gate.open()
    #expect(try await images.image(from: url).origin == .network)
    #expect(network.paths.count == 2 && store.persistedKeys.count == 1)
  }

  @Test func aCallerWhoIsCancelledBeforehandAsksNobody() async throws {
    let (images, _) = try await fetcher()
    let url = try picture("/a")
    let caller = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await reason { () throws(ImageError) in try await images.image(from: url) }
    }
    #expect(await caller.value == .cancelled)
    #expect(network.paths.isEmpty)
  }

  @Test func atMostFiveRequestsRunAtATime() async throws {
    let (images, _) = try await fetcher()
    let urls = try (0..<12).map { try picture("/\($0)") }
    network.gate.close()
    let all = Task { await images.images(from: urls) }
    try await until { images.waiterCount == 12 }
    await network.calls.wait { $0.active >= 5 }
    for _ in 0..<1_000 { await Task.yield() }
    #expect(network.calls.value.active == 5)
    network.gate.open()
    #expect(await all.value.count == 12)
    #expect(network.calls.value.mostActive == 5 && network.paths.count == 12)
  }

  @Test func waitingForATurnCanBeGivenUp() async throws {
    let (images, _) = try await fetcher(.init(requests: 1))
    let (first, second) = (try picture("/1"), try picture("/2"))
    network.gate.close()
    let running = Task { await reason { () throws(ImageError) in try await images.image(from: first) } }
    await network.calls.wait { $0.active == 1 }
    let waiting = Task { await reason { () throws(ImageError) in try await images.image(from: second) } }
    try await until { images.waiterCount == 2 }
    for _ in 0..<100 { await Task.yield() }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
    network.gate.open()
    #expect(await running.value == nil)
    #expect(network.paths == ["/1"])
    // The turn was not lost.
    #expect(try await images.image(from: second).origin == .network)
  }

  @Test func oneImageThatFailsDoesNotConcernTheOthers() async throws {
    let (images, _) = try await fetcher()
    network.answer("/b", .failure(.http(status: 404)))
    let (a, b) = (try picture("/a"), try picture("/b"))
    let bad = try #require(URL(string: "ftp://x"))
    let found = await images.images(from: [a, b, bad, a])
    #expect(found.count == 3)
    #expect(try found[a]?.get().origin == .network)
    #expect(throws: ImageError.http(status: 404)) { try found[b]?.get() }
    #expect(throws: ImageError.invalidURL) { try found[bad]?.get() }
  }

  @Test func aCancelledCallOfManyCancelsTheirRequests() async throws {
    let (images, _) = try await fetcher()
    let urls = try (0..<3).map { try picture("/\($0)") }
    network.gate.close()
    let all = Task { await images.images(from: urls) }
    await network.calls.wait { $0.active == 3 }
    all.cancel()
    for result in await all.value.values { #expect(throws: ImageError.cancelled) { try result.get() } }
    await network.calls.wait { $0.cancelled == 3 }
  }

  /// Clears the images while one is being fetched, which goes on when the gate opens.
  private func clear(_ images: ImageFetcher, during url: URL) async throws -> Task<LoadedImage, any Error> {
    network.gate.close()
    let before = Task { try await images.image(from: url) }
    await network.calls.wait { $0.active == 1 }
    try await images.clear()
    return before
  }

  @Test func whatIsFetchedWhileImagesAreClearedDoesNotComeBack() async throws {
    let ((images, store), url) = (try await fetcher(), try picture("/a"))
    let before = try await clear(images, during: url)
    network.gate.open()
    let late = try await before.value
    #expect(late.origin == .network && late.storageError == nil)
    #expect(store.persistedKeys.isEmpty)
    #expect(await store.usage == .init())
    #expect(try await images.image(from: url).origin == .network)
  }

  @Test func whoAsksAfterClearingDoesNotGetWhatWasFetchedBefore() async throws {
    let ((images, store), url) = (try await fetcher(), try picture("/a"))
    let before = try await clear(images, during: url)
    let after = Task { try await images.image(from: url) }
    await network.calls.wait { $0.active == 2 }
    network.gate.open()
    #expect(try await before.value.origin == .network)
    #expect(try await after.value.origin == .network)
    #expect(store.persistedKeys.count == 1)  // the one that was begun after
  }

  @Test func aFullDiskIsNoTroubleForAnImage() async throws {
    let (images, store) = try await fetcher()
    files.fail(FaultPlan(.operation(files.operationCount + 1), code: .full, isPermanent: true))
    let image = try await images.image(from: picture("/a"))
    #expect(image.origin == .network && image.data == point && image.storageError?.code == .full)
    files.fail()
    #expect(store.persistedKeys.isEmpty)
    #expect(try await images.image(from: picture("/a")).storageError == nil)
    #expect(try await images.image(from: picture("/a")).origin == .memory)
  }

  @Test func aDamagedFileIsFetchedAgain() async throws {
    let (images, store) = try await fetcher()
    _ = try await images.image(from: picture("/a"))
    let path = try #require(files.paths.first { !$0.contains("blob-index") })
    try files.place(Data(point.dropLast() + [1]), at: path)
    store.removeFromMemory()
    let again = try await images.image(from: picture("/a"))
    #expect(again.origin == .network && again.data == point)
    #expect(network.paths.count == 2)
  }

  @Test func aFileThatCannotBeReadIsFetchedAndTheReasonIsToldBesideIt() async throws {
    let (images, store) = try await fetcher()
    _ = try await images.image(from: picture("/a"))
    store.removeFromMemory()
    files.fail(FaultPlan(.read(files.readCount + 1), code: .inputOutput, isPermanent: true))
    let again = try await images.image(from: picture("/a"))
    #expect(again.origin == .network && again.storageError?.code == .inputOutput)
  }
}
