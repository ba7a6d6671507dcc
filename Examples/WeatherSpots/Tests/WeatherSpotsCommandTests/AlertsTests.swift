import Foundation
import StandInServer
import Subprocess
import Synchronization
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The pipeline of warnings as a person or a server runs it.
@Suite(.timeLimit(.minutes(15))) struct AlertsTests {
  private let workspace: Workspace
  private let store: String

  init() async throws {
    workspace = try Workspace()
    store = workspace.path("spots.sqlite")
    for (name, latitude, longitude, country) in [
      ("Brest", "48.39", "-4.49", "FR"), ("Nice", "43.7", "7.27", "FR"), ("Funchal", "32.65", "-16.91", "PT"),
    ] {
      let run = try await weatherSpots(["add", name, latitude, longitude, "--zone", "Europe/Paris", "--country", country, "--store", store])
      #expect(run.code == 0)
    }
  }

  private func exercise(_ now: String, _ more: [String] = []) async throws -> Run {
    try await weatherSpots(
      ["alerts", "watch", "--once", "--provider", "recorded", "--timeout", "300", "--now", now, "--store", store] + more)
  }

  @Test func aWarningIsToldOnceAndItsUpdateToo() async throws {
    func line(_ name: String, _ summary: String, _ issued: String, _ now: String) -> String {
      "! \(name): \(summary), moderate, until 2026-07-02T00:00:00Z, weather-spots, made up, issued \(issued), as of \(now)\n"
    }
    let first = try await exercise("2026-07-01T10:00:00Z", ["Brest"])
    #expect(
      first
        == Run(
          output: line("Brest", "Exercise: wind", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z"),
          errors: "weather-spots: 1 call for 1 place in 1 cluster, 1 new notice, 1 delivered\n"))
    let second = try await exercise("2026-07-01T10:04:00Z", ["Brest"])
    #expect(second == Run(output: "", errors: "weather-spots: 0 calls for 1 place in 1 cluster, 0 new notices, 0 delivered\n"))
    let unchanged = try await exercise("2026-07-01T10:05:00Z", ["Brest"])
    #expect(unchanged == Run(output: "", errors: "weather-spots: 1 call for 1 place in 1 cluster, 0 new notices, 0 delivered\n"))
    let update = try await exercise("2026-07-01T12:00:00Z", ["Brest"])
    #expect(update.output == line("Brest", "Exercise: wind, update 1", "2026-07-01T12:00:00Z", "2026-07-01T12:00:00Z"))
  }

  @Test func theListSaysWhatIsInForceAndWhatOnlyWas() async throws {
    func list(_ now: String) async throws -> Run { try await weatherSpots(["alerts", "list", "--now", now, "--store", store]) }
    #expect(
      try await list("2026-07-01T10:00:00Z")
        == Run(output: "No warnings fetched yet; `weather-spots alerts watch` fetches them.\n"))
    _ = try await exercise("2026-07-01T10:00:00Z", ["Brest"])
    let notices = "Notices: 0 queued, 1 delivered, 0 lapsed. Calls on the last day: 1, 1 with one for each place.\n"
    let warning = "  Exercise: wind, moderate, until 2026-07-02T00:00:00Z, weather-spots, made up\n"
    #expect(
      try await list("2026-07-01T10:01:00Z") == Run(output: "Brest (gbsg3 FR): 1 warning, as of 60 s ago\n\(warning)\(notices)"))
    #expect(
      try await list("2026-07-01T10:05:00Z")
        == Run(output: "Brest (gbsg3 FR): 1 warning, last known 5 min ago, not current\n\(warning)\(notices)", code: 4))
    #expect(
      try await list("2026-07-03T10:05:00Z")
        == Run(output: "Brest (gbsg3 FR): no warnings, last known 2 days ago, not current\n\(notices)"))
  }

  @Test(.needsSigning) func onlyOneProcessWatchesAStore() async throws {
    let lock = workspace.path("spots.sqlite-alerts.lock")
    let (asked, ask) = AsyncStream.makeStream(of: Void.self)
    let gate = Gate()
    let kit = try WeatherKit(workspace) { _ in
      ask.yield()
      await gate.wait()
      return "[]"
    }
    let url = try await kit.server.start()
    _ = try await Subprocess.run(
      program, arguments: Arguments(kit.arguments(url, store)), environment: .inherit.updating(kit.environment), input: .none,
      output: .discarded, error: .discarded
    ) { execution in
      var asks = asked.makeAsyncIterator()
      _ = await asks.next()
      #expect(FileManager.default.fileExists(atPath: lock))
      let second = try await exercise("2026-07-01T10:00:00Z")
      #expect(second == Run(output: "", errors: "weather-spots: the store is in use by another process\n", code: 75))
      gate.open()
      try execution.send(signal: .kill)
    }
    // The right goes with its process, however that ends.
    #expect(try await exercise("2026-07-01T10:00:00Z").code == 0)
    await kit.server.stop()
  }

  @Test func openMeteoHasNoWarningsAndThatIsSaid() async throws {
    #expect(
      try await weatherSpots(["alerts", "watch", "--once", "--store", store])
        == Run(
          output: "", errors: "weather-spots: open-meteo has no warnings; use --provider weatherkit, or recorded for a trial\n", code: 64)
    )
  }

  @Test(.needsSigning) func aProviderThatIsOutIsAFailureWithItsReason() async throws {
    let kit = try WeatherKit(workspace) { _ in nil }
    let url = try await kit.server.start()
    let run = try await weatherSpots(kit.arguments(url, store), environment: kit.texts)
    #expect(run.code == 69 && run.output.isEmpty)
    #expect(run.errors.contains("3 clusters without an answer") && run.errors.contains("the weather service failed (status 500)"))
    await kit.server.stop()
  }

  @Test func aWebhookThatIsOutKeepsTheNoticeInTheQueue() async throws {
    let status = Mutex(400)
    let hook = try LoopbackServer { _ in .init(status.withLock { $0 }, "") }
    let url = try await hook.start().absoluteString
    let failed = try await exercise("2026-07-01T10:00:00Z", ["Brest", "--webhook", url])
    #expect(failed.code == 73 && failed.errors.contains("1 refused by the sink, 1 in the queue\nweather-spots: the webhook answers 400\n"))
    status.withLock { $0 = 200 }
    let later = try await exercise("2026-07-01T10:01:00Z", ["Brest", "--webhook", url])
    #expect(later.code == 0 && later.errors.contains(" 1 delivered\n"))
    #expect(hook.requests.count == 2 && Set(hook.requests.map { $0.headers["idempotency-key"] }).count == 1)
    await hook.stop()
  }

  /// kill -9 while the n-th question is under way, for each n, then once more to the end.
  @Test(.needsSigning) func aFileHasEachNoticeOnceAfterKillsDuringQuestions() async throws {
    let file = workspace.path("notices.jsonl")
    let (asked, ask) = AsyncStream.makeStream(of: Int.self)
    let gate = Gate()
    let count = Mutex(0)
    let kit = try WeatherKit(workspace) { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      ask.yield(number)
      // Three are asked at a time; one of each run is never answered.
      if [2, 4].contains(number) { await gate.wait() }
      return WeatherKit.oneAlert
    }
    let url = try await kit.server.start()
    let arguments = kit.arguments(url, store) + ["--file", file]
    for kill in [2, 4] {
      _ = try await Subprocess.run(
        program, arguments: Arguments(arguments), environment: .inherit.updating(kit.environment), input: .none, output: .discarded,
        error: .discarded
      ) { execution in
        var asks = asked.makeAsyncIterator()
        while let number = await asks.next(), number < kill {}
        try execution.send(signal: .kill)
      }
    }
    let last = try await weatherSpots(arguments, environment: kit.texts)
    #expect(last.code == 0)
    let lines = try workspace.text("notices.jsonl").split(separator: "\n")
    #expect(lines.count == 3 && Set(lines).count == 3)
    gate.open()
    await kit.server.stop()
  }

  /// kill -9 while a notice is being posted, of which the receiver has the whole body.
  @Test func aWebhookHearsOfEachNoticeAndOnlyTheOneUnderWayComesTwice() async throws {
    let (posted, post) = AsyncStream.makeStream(of: Void.self)
    let gate = Gate()
    let count = Mutex(0)
    let hook = try LoopbackServer { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number == 2 {
        post.yield()
        await gate.wait()
      }
      return .init(200, "")
    }
    let url = try await hook.start().absoluteString
    let arguments = [
      "alerts", "watch", "--once", "--provider", "recorded", "--now", "2026-07-01T10:00:00Z", "--store", store, "--timeout", "300",
      "--webhook", url,
    ]
    _ = try await Subprocess.run(program, arguments: Arguments(arguments), input: .none, output: .discarded, error: .discarded) {
      execution in
      var posts = posted.makeAsyncIterator()
      _ = await posts.next()
      try execution.send(signal: .kill)
    }
    gate.open()
    #expect(try await weatherSpots(arguments).code == 0)
    let keys = hook.requests.compactMap { $0.headers["idempotency-key"] }
    #expect(keys.count == 4 && Set(keys).count == 3 && keys[1] == keys[2])
    let bodies = hook.requests.map { String(decoding: $0.body, as: UTF8.self).contains("\"may_be_repeat\":true") }
    #expect(bodies == [false, false, true, false])
    await hook.stop()
  }

  private let program = Executable.path(FilePath(buildDirectory.appending(path: "weather-spots").path))
}

/// A gate that holds an answer until the test opens it.
final class Gate: Sendable {
  private let state = Mutex((isOpen: false, waiting: [CheckedContinuation<Void, Never>]()))

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// WeatherKit on loopback, with warnings that a test writes, and what a program needs to ask it.
struct WeatherKit {
  let server: LoopbackServer
  let texts: [String: String]
  var environment: [Environment.Key: String?] {
    Dictionary(uniqueKeysWithValues: texts.map { (Environment.Key(stringLiteral: $0), String?.some($1)) })
  }

  /// - Parameter alerts: The array of warnings as JSON; `nil` for the status 500.
  init(_ workspace: Workspace, _ alerts: @escaping @Sendable (LoopbackServer.Request) async -> String?) throws {
    server = try LoopbackServer { request in
      guard let alerts = await alerts(request) else { return .init(500, "") }
      return .init(
        200,
        """
        {"weatherAlerts": {"name": "WeatherAlertCollection", "detailsUrl": "https://example.org",
          "metadata": {"expireTime": "2026-07-01T10:05:00Z", "readTime": "2026-07-01T10:00:00Z", "latitude": 1, "longitude": 2, "units": "m",
            "version": 1},
          "alerts": \(alerts)}}
        """)
    }
    // The key of RFC 7515's appendix A.3, which everybody knows.
    let key = try workspace.file(
      "AuthKey.p8",
      """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
      H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
      7xO2z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrZIpIyiFiOWt
      -----END PRIVATE KEY-----

      """)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    texts = [
      "WEATHERKIT_KEY_FILE": key, "WEATHERKIT_KEY_ID": "ABC123DEFG", "WEATHERKIT_TEAM_ID": "TEAM123456",
      "WEATHERKIT_SERVICE_ID": "com.example.spots", "XDG_CONFIG_HOME": "/nonexistent",
    ]
  }

  func arguments(_ url: URL, _ store: String) -> [String] {
    [
      "alerts", "watch", "--once", "--provider", "weatherkit", "--api", url.absoluteString, "--now", "2026-07-01T10:00:00Z", "--timeout",
      "300",
      "--store", store,
    ]
  }

  static let oneAlert = """
    [{"id": "w1", "areaName": "Everywhere", "countryCode": "FR", "description": "Wind", "effectiveTime": "2026-07-01T09:00:00Z",
      "expireTime": "2026-07-01T22:00:00Z", "issuedTime": "2026-07-01T09:00:00Z", "severity": "moderate", "source": "A service",
      "certainty": "likely", "urgency": "expected", "detailsUrl": "https://example.org/w1", "responses": []}]
    """
}
