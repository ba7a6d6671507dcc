import Foundation
import StandInServer
import Synchronization
import Testing

/// The pipeline of warnings as a person or a server runs it.
@Suite(.timeLimit(.minutes(15))) struct AlertsTests {
  private let workspace = Workspace()
  private var store: String { workspace.path("spots.sqlite") }

  init() async throws {
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
    func counts(_ text: String) -> String { "weather-spots: \(text)\n" }
    let told = line("Brest", "Exercise: wind", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z")
    #expect(first == Run(output: told, errors: counts("1 call for 1 place in 1 cluster, 1 new notice, 1 delivered")))
    let second = try await exercise("2026-07-01T10:04:00Z", ["Brest"])
    #expect(second == Run(output: "", errors: counts("0 calls for 1 place in 1 cluster, 0 new notices, 0 delivered")))
    let unchanged = try await exercise("2026-07-01T10:05:00Z", ["Brest"])
    #expect(unchanged == Run(output: "", errors: counts("1 call for 1 place in 1 cluster, 0 new notices, 0 delivered")))
    let update = try await exercise("2026-07-01T12:00:00Z", ["Brest"])
    #expect(update.output == line("Brest", "Exercise: wind, update 1", "2026-07-01T12:00:00Z", "2026-07-01T12:00:00Z"))
  }

  @Test func theListSaysWhatIsInForceAndWhatOnlyWas() async throws {
    func list(_ now: String) async throws -> Run { try await weatherSpots(["alerts", "list", "--now", now, "--store", store]) }
    #expect(try await list("2026-07-01T10:00:00Z") == Run(output: "No warnings fetched yet; `weather-spots alerts watch` fetches them.\n"))
    _ = try await exercise("2026-07-01T10:00:00Z", ["Brest"])
    let notices = "Notices: 0 queued, 1 delivered, 0 lapsed. Calls on the last day: 1, 1 with one for each place.\n"
    let warning = "  Exercise: wind, moderate, until 2026-07-02T00:00:00Z, weather-spots, made up\n"
    for (now, words, warning, code) in [
      ("2026-07-01T10:01:00Z", "1 warning, as of 60 s ago", warning, 0),
      ("2026-07-01T10:05:00Z", "1 warning, last known 5 min ago, not current", warning, 4),
      ("2026-07-03T10:05:00Z", "no warnings, last known 2 days ago, not current", "", 0),
    ] {
      #expect(try await list(now) == Run(output: "Brest (gbsg3 FR): \(words)\n\(warning)\(notices)", code: Int32(code)))
    }
  }

  @Test(.needsSigning) func onlyOneProcessWatchesAStore() async throws {
    let lock = workspace.path("spots.sqlite-alerts.lock")
    let (isAsked, isOpen) = (AwaitableState(false), AwaitableState(false))
    let kit = try WeatherKit(workspace) { _ in
      isAsked.update { $0 = true }
      await isOpen.wait { $0 }
      return "[]"
    }
    let url = try await kit.server.start()
    try await killed(kit.arguments(url, store), environment: kit.texts) {
      try await until { isAsked.value }
      #expect(FileManager.default.fileExists(atPath: lock))
      let second = try await exercise("2026-07-01T10:00:00Z")
      #expect(second == Run.failure("the store is in use by another process", 75))
      isOpen.update { $0 = true }
    }
    // The right goes with its process, however that ends.
    #expect(try await exercise("2026-07-01T10:00:00Z").code == 0)
    await kit.server.stop()
  }

  @Test func openMeteoHasNoWarningsAndThatIsSaid() async throws {
    #expect(
      try await weatherSpots(["alerts", "watch", "--once", "--store", store])
        == Run.failure("open-meteo has no warnings; use --provider weatherkit, or recorded for a trial", 64))
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
    let (asked, isOpen) = (AwaitableState(0), AwaitableState(false))
    let kit = try WeatherKit(workspace) { _ in
      // Three are asked at a time; one of each run is never answered.
      if [2, 4].contains(asked.increment()) { await isOpen.wait { $0 } }
      return WeatherKit.oneAlert
    }
    let url = try await kit.server.start()
    let arguments = kit.arguments(url, store) + ["--file", workspace.path("notices.jsonl")]
    for kill in [2, 4] { try await killed(arguments, environment: kit.texts) { try await until { asked.value >= kill } } }
    let last = try await weatherSpots(arguments, environment: kit.texts)
    #expect(last.code == 0)
    let lines = try workspace.text("notices.jsonl").split(separator: "\n")
    #expect(lines.count == 3 && Set(lines).count == 3)
    isOpen.update { $0 = true }
    await kit.server.stop()
  }

  /// kill -9 while a notice is being posted, of which the receiver has the whole body.
  @Test func aWebhookHearsOfEachNoticeAndOnlyTheOneUnderWayComesTwice() async throws {
    let (posted, isOpen) = (AwaitableState(0), AwaitableState(false))
    let hook = try LoopbackServer { _ in
      if posted.increment() == 2 { await isOpen.wait { $0 } }
      return .init(200, "")
    }
    let url = try await hook.start().absoluteString
    let arguments = [
      "alerts", "watch", "--once", "--provider", "recorded", "--now", "2026-07-01T10:00:00Z", "--store", store, "--timeout", "300",
      "--webhook", url,
    ]
    try await killed(arguments) { try await until { posted.value >= 2 } }
    isOpen.update { $0 = true }
    #expect(try await weatherSpots(arguments).code == 0)
    let keys = hook.requests.compactMap { $0.headers["idempotency-key"] }
    #expect(keys.count == 4 && Set(keys).count == 3 && keys[1] == keys[2])
    let bodies = hook.requests.map { String(decoding: $0.body, as: UTF8.self).contains("\"may_be_repeat\":true") }
    #expect(bodies == [false, false, true, false])
    await hook.stop()
  }
}

extension AwaitableState<Int> {
  /// Counts one more, and returns the new count.
  fileprivate func increment() -> Int {
    update { count in
      count += 1
      return count
    }
  }
}

/// WeatherKit on loopback, with warnings that a test writes, and what a program needs to ask it.
struct WeatherKit {
  let server: LoopbackServer
  let texts: [String: String]

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
      "300", "--store", store,
    ]
  }

  static let oneAlert = """
    [{"id": "w1", "areaName": "Everywhere", "countryCode": "FR", "description": "Wind", "effectiveTime": "2026-07-01T09:00:00Z",
      "expireTime": "2026-07-01T22:00:00Z", "issuedTime": "2026-07-01T09:00:00Z", "severity": "moderate", "source": "A service",
      "certainty": "likely", "urgency": "expected", "detailsUrl": "https://example.org/w1", "responses": []}]
    """
}
