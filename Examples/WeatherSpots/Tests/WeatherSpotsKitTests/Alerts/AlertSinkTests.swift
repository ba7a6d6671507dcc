import Foundation
import Larder
import LarderTesting
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct AlertSinkTests {
  private let folder = Workspace()
  private var file: URL { folder.directory.appending(path: "notices.jsonl") }

  private func delivery(_ id: String, mayBeRepeat: Bool = false) throws -> AlertDelivery {
    let alert = try warning(id)
    let revision = AlertRevision(alert)
    return AlertDelivery(
      key: NoticeKey(watcher: "a", alert: id, revision: revision), watcher: "a", place: "Brest", alert: alert, revision: revision,
      checkedAt: try instant("2026-07-01T12:00:00Z"), mayBeRepeat: mayBeRepeat)
  }

  private func refusal(by sink: some AlertSink) async throws -> SinkError? {
    let notice = try delivery("1")
    return await #expect(throws: SinkError.self) { try await sink.deliver([notice]) }
  }

  private func ids() throws -> [String] {
    try folder.lines("notices.jsonl").map { try #require(($0["alert"] as? [String: Any])?["id"] as? String) }
  }

  @Test func aFileGetsALineForEachNotice() async throws {
    let sink = FileSink(file)
    try await sink.deliver([try delivery("1"), try delivery("2")])
    try await FileSink(file).deliver([try delivery("3")])
    #expect(try ids() == ["1", "2", "3"])
    let line = try #require(try folder.lines("notices.jsonl").first)
    #expect(line["place"] as? String == "Brest" && line["checked_at"] as? String == "2026-07-01T12:00:00Z")
    #expect(line["may_be_repeat"] == nil)
    #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
  }

  @Test func aFileLooksForWhatMayBeThere() async throws {
    try await FileSink(file).deliver([try delivery("1"), try delivery("2")])
    try await FileSink(file).deliver([try delivery("2", mayBeRepeat: true), try delivery("3", mayBeRepeat: true), try delivery("4")])
    #expect(try ids() == ["1", "2", "3", "4"])
  }

  @Test func aTornLastLineIsCutOffAndWrittenAgain() async throws {
    try await FileSink(file).deliver([try delivery("1"), try delivery("2")])
    let whole = try Data(contentsOf: file)
    let first = try #require(whole.firstIndex(of: 0x0A)) + 1
    // Lengths that a power cut can leave of the second line: none of it, all but its end, and some between.
    for length in [first, first + 1, whole.count - 1] + stride(from: first + 2, to: whole.count - 1, by: 37) {
      try whole.prefix(length).write(to: file)  // the state that a power cut leaves
      try await FileSink(file).deliver([try delivery("2", mayBeRepeat: true)])
      #expect(try Data(contentsOf: file) == whole, "cut at \(length)")
    }
  }

  @Test func whatOthersWroteIntoAFileStays() async throws {
    try Data("not JSON\n{\"key\":1}\n\n".utf8).write(to: file)  // a test's input
    try await FileSink(file).deliver([try delivery("1", mayBeRepeat: true)])
    let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    #expect(text.hasPrefix("not JSON\n{\"key\":1}\n\n{\"alert\":"))
  }

  @Test func theLastLineOfAnotherProgramIsEndedAndStays() async throws {
    for text in ["no line end", "one\ntwo", "{\"key\":1}"] {
      try Data(text.utf8).write(to: file)  // a test's input
      try await FileSink(file).deliver([try delivery("1", mayBeRepeat: true)])
      let found = String(decoding: try Data(contentsOf: file), as: UTF8.self)
      #expect(found.hasPrefix(text + "\n{\"alert\":"))
    }
  }

  @Test func aFileThatCannotBeMadeIsAFailure() async throws {
    #expect(try await refusal(by: FileSink(folder.directory.appending(path: "missing/notices.jsonl")))?.tookNothing == true)
  }

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func aDirectoryWhoseSyncFailedIsSyncedBeforeAnythingIsAccepted() async throws {
    // Files in it may be made and opened, and it cannot be opened itself: the file is made, and the sync fails.
    chmod(folder.directory.path, 0o300)
    defer { chmod(folder.directory.path, 0o700) }
    let sink = FileSink(file)
    // The file is there when the same sink tries again, and when a new one does after a kill.
    for sink in [sink, sink, FileSink(file)] {
      let error = try await refusal(by: sink)
      #expect(error?.description.hasPrefix("the directory of notices.jsonl cannot be synced") == true)
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
    chmod(folder.directory.path, 0o700)
    try await sink.deliver([try delivery("1")])
    #expect(try ids() == ["1"])
  }

  @Test func aWebhookGetsTheNoticeAndItsKey() async throws {
    let server = try LoopbackServer { _ in .init(204, "") }
    let sink = WebhookSink(try await server.start().appending(path: "hook"), timeout: .seconds(300))
    let notice = try delivery("1")
    try await sink.deliver([notice])
    let request = try #require(server.requests.first)
    #expect(server.requests.count == 1 && request.method == "POST" && request.path == "/hook")
    #expect(request.headers["idempotency-key"] == notice.key.rawValue && request.headers["content-type"] == "application/json")
    let body = try #require(try JSONSerialization.jsonObject(with: request.body) as? [String: Any])
    #expect(body["key"] as? String == notice.key.rawValue && body["may_be_repeat"] as? Bool == false)
    #expect((body["alert"] as? [String: Any])?["summary"] as? String == "Wind")
    await server.stop()
  }

  @Test func aWebhookThatFailsForAMomentIsTriedAgainWithTheSameKey() async throws {
    let statuses = Mutex([200, 503, 503])
    let server = try LoopbackServer { _ in .init(statuses.withLock { $0.popLast() ?? 500 }, "") }
    let retry = RetryPolicy(attempts: 3, base: .zero, cap: .zero)
    let sink = WebhookSink(try await server.start(), timeout: .seconds(300), retry: retry, clock: ManualClock())
    try await sink.deliver([try delivery("1")])
    #expect(server.requests.count == 3 && Set(server.requests.map { $0.headers["idempotency-key"] }).count == 1)
    await server.stop()
  }

  @Test func aWebhookThatAsksToWaitIsWaitedFor() async throws {
    let server = try LoopbackServer { _ in .init(429, "", headers: ["Retry-After": "20"]) }
    let clock = ManualClock()
    let sink = WebhookSink(try await server.start(), timeout: .seconds(300), retry: RetryPolicy(attempts: 2), clock: clock)
    let notice = try delivery("1")
    let delivery = Task { try await sink.deliver([notice]) }
    await clock.waitForSleepers()
    clock.advance(by: .seconds(19))
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    let error = await #expect(throws: SinkError.self) { try await delivery.value }
    #expect(error?.retryAfter == .seconds(20) && server.requests.count == 2)
    await server.stop()
  }

  @Test(arguments: [400, 404, 410, 302]) func whatAWebhookRefusesIsNotTriedAgainAtOnce(_ status: Int) async throws {
    let server = try LoopbackServer { request in
      request.path == "/other" ? .init(200, "") : .init(status, "", headers: ["Location": "/other"])
    }
    let error = try await refusal(by: WebhookSink(try await server.start().appending(path: "hook"), timeout: .seconds(300)))
    #expect(error?.description == "the webhook answers \(status)" && server.requests.count == 1)
    await server.stop()
  }

  @Test func aWebhookThatIsNotThereHasTakenNothing() async throws {
    let server = try LoopbackServer { _ in .init(200, "") }
    let url = try await server.start()
    await server.stop()
    #expect(try await refusal(by: WebhookSink(url, retry: .never))?.tookNothing == true)
  }

  @Test func aWebhookThatDoesNotAnswerInTimeIsGivenUp() async throws {
    let server = try PictureServer(["/hook": .held(Data())])
    let error = try await refusal(
      by: WebhookSink(try await server.start().appending(path: "hook"), timeout: .milliseconds(300), retry: .never))
    #expect(error?.description == "the webhook at 127.0.0.1 did not answer within 0.3 s" && error?.tookNothing == false)
    await server.stop()
  }

  @Test func aDeliveryThatIsCancelledEndsAtOnce() async throws {
    let server = try PictureServer(["/hook": .held(Data())])
    let sink = WebhookSink(try await server.start().appending(path: "hook"), timeout: .seconds(3000))
    let notice = try delivery("1")
    let delivery = Task { try await sink.deliver([notice]) }
    await server.events.wait { $0.requests.count == 1 }
    delivery.cancel()
    let error = await #expect(throws: SinkError.self) { try await delivery.value }
    #expect(error?.description == "cancelled" && error?.tookNothing == false && server.requests.count == 1)
    await server.stop()
  }

  @Test func theNameOfAWebhookTellsURLsApartAndNothingThatMayBeSecret() throws {
    func name(_ text: String) throws -> String { WebhookSink(try #require(URL(string: text))).name }
    let secret = try name("https://user:password@example.org/hook?token=secret#x")
    #expect(secret.wholeMatch(of: /webhook:example\.org#[0-9a-f]{12}/) != nil)
    #expect(try name("https://user:other@example.org/hook?token=secret") == secret)
    let others = try ["https://example.org/a", "https://example.org/b", "https://example.org/a?b", "http://example.org/a"].map(name)
    #expect(Set(others + [secret]).count == 5)
    // Stores know this name: another one would tell everything again.
    #expect(try name("https://example.org/a") == "webhook:example.org#fc92a45a093f")
  }

  @Test func aLineSaysWhatIsKnownAndFromWhen() throws {
    #expect(
      LineSink.text(try delivery("1", mayBeRepeat: true))
        == "! Brest: Wind, moderate (Finistère), until 2026-07-01T22:00:00Z, Météo-France, issued 2026-07-01T09:30:00Z, "
        + "as of 2026-07-01T12:00:00Z [perhaps told before]")
  }
}
