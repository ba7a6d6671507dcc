import Foundation
import Larder
import LarderSync
import LarderTesting
import Synchronization
import Testing

@testable import LarderServer

private struct Tally: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var name = ""
  var count = 0
}

/// The engine of devices against the real server, over real HTTP.
@Suite(.timeLimit(.minutes(15))) struct DeviceTests {
  /// A device with a store in memory and a clock of its own.
  private struct Device {
    let tallies: LocalRepository<Tally>
    let sync: SyncEngine
    let clock: ManualClock

    init(_ base: String, years: Double = 0, timeout: Duration = .seconds(20), token: String = TestTokens.ann) async throws {
      clock = ManualClock(now: Date(timeIntervalSince1970: 1_767_225_600 + years * 31_557_600))
      let store = try await Store.open(InMemoryBackend())
      let schema = RepositorySchema<Tally>("tallies").synced(in: "user/42", merge: .fields(counters: [\.count]), clock: clock)
      tallies = try await store.repository(schema)
      guard let url = URL(string: base) else { throw URLError(.badURL) }
      let transport = HTTPTransport(url, timeout: timeout) { token }
      sync = try await SyncEngine(store, transport: transport, scopes: ["user/42"], clock: clock)
    }

    func increment() async throws {
      try await tallies.transaction { [tallies] transaction in
        var tally = try transaction.find(by: "a", in: tallies) ?? Tally(id: "a")
        tally.count += 1
        try transaction.save(tally, in: tallies)
      }
    }

    /// Exchanges over a network that may not be there.
    func tryExchange() async throws { do { try await sync.exchange() } catch is SyncProblem {} }
  }

  private static func expectEqual(_ devices: [Device], count: Int) async throws {
    for _ in 0..<2 { for device in devices { try await device.sync.exchange() } }
    for device in devices {
      let tally = try #require(try await device.tallies.find(by: "a"))
      #expect(tally.count == count)
      #expect(try await device.tallies.loadAll() == devices[0].tallies.loadAll())
    }
  }

  @Test func aConnectionThatIsCutAnywhereLosesAndDoublesNothing() async throws {
    let step = ProcessInfo.processInfo.environment["LARDER_PROXY_STEP"].flatMap { Int($0) } ?? 29
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      let devices = [try await Device(proxy.base, years: 10), try await Device(proxy.base, years: -10)]
      try await devices[0].increment()
      try await Self.expectEqual(devices, count: 1)
      var (count, at) = (1, 1)
      while true {
        for device in devices { try await device.increment() }
        count += 2
        for device in devices {
          proxy.set(.init(cut: at))
          try await device.tryExchange()
        }
        let longest = proxy.passed
        proxy.set(.init())
        if at > longest { break }
        at += step
      }
      try await Self.expectEqual(devices, count: count)
    }
  }

  @Test func repeatedRequestsChangeNothing() async throws {
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(repeats: true))
      var count = 0
      for _ in 0..<10 {
        let device = try await Device(proxy.base)
        try await device.sync.exchange()
        try await device.increment()
        count += 1
        try await device.sync.exchange()
      }
      #expect(proxy.repeatCount >= 10)
      try await Self.expectEqual([try await Device(server.base), try await Device(proxy.base)], count: count)
    }
  }

  /// A connection that is used again may end behind a request that the server has taken: the request is sent on another one.
  @Test func requestsThatLoseTheirConnectionAreTakenOnce() async throws {
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(losesSecondAnswers: true))
      let device = try await Device(proxy.base)
      for _ in 0..<10 {
        try await device.increment()
        try await device.sync.exchange()
      }
      #expect(proxy.lostCount >= 10)
      try await Self.expectEqual([try await Device(server.base), device], count: 10)
    }
  }

  @Test func slowAndHalfOpenConnectionsEnd() async throws {
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(delay: 0.05))
      // The time holds for the exchanges that succeed, too.
      let device = try await Device(proxy.base, timeout: .seconds(4))
      try await device.increment()
      try await device.sync.exchange()
      for stall in [0, 300, 500] {
        proxy.set(.init(stall: stall))
        try await device.increment()
        await #expect(throws: SyncProblem.self) { try await device.sync.exchange() }
      }
      proxy.set(.init())
      try await Self.expectEqual([device, try await Device(server.base)], count: 4)
    }
  }

  /// Expects one device to see what another one writes, by itself.
  private static func expectNews(of here: Device, at there: Device) async throws {
    // Who asks in turns rests in between.
    let pace = Task { [clock = there.clock] in
      while !Task.isCancelled {
        if clock.sleeperCount > 0 { clock.advance(by: .seconds(2)) }
        await Task.yield()
      }
    }
    defer { pace.cancel() }
    await there.sync.start()
    for await status in there.sync.status where status.phase == .idle && status.lastExchange != nil { break }
    var changes = there.tallies.changes().makeAsyncIterator()
    for count in 1...5 {
      try await here.increment()
      try await here.sync.exchange()
      #expect(try await changes.next()?.changes.first?.new?.count == count)
    }
    await there.sync.stop()
  }

  /// One half has no polls that wait, the other one no events.
  @Test(arguments: ["wait=", "/events"]) func newsArriveByEventsAndByPolls(blocked: String) async throws {
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(blocked: blocked))
      try await Self.expectNews(of: try await Device(server.base), at: try await Device(proxy.base))
      let streams = try await server.number(#"larder_requests_total{route="/v1/scopes/{scope}/events",method="GET",status="200"}"#)
      if blocked == "wait=" { #expect(streams > 0) } else { #expect(streams == -1 && proxy.blockedCount > 0) }
    }
  }

  /// As by proxies that wait for the end of an answer before they pass it on; an engine that waited for a stream to be given up for its
  /// silence would be at it for four minutes.
  @Test(.timeLimit(.minutes(15))) func newsArriveWhereEventsAreSwallowed() async throws {
    try await TestServer.run(options: .unlimited) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(swallowed: "/events"))
      try await Self.expectNews(of: try await Device(server.base), at: try await Device(proxy.base))
    }
  }

  @Test func anotherTokenIsAskedForOnce() async throws {
    try await TestServer.run { server in
      let asked = Mutex(0)
      guard let url = URL(string: server.base) else { throw URLError(.badURL) }
      let transport = HTTPTransport(url) {
        asked.withLock { asked in
          asked += 1
          return asked == 1 ? "too old" : TestTokens.ann
        }
      }
      _ = try await transport.changes(SyncChangesRequest(device: "d", since: 0), in: "user/42")
      _ = try await transport.changes(SyncChangesRequest(device: "d", since: 0), in: "user/42")
      #expect(asked.withLock { $0 } == 2)
      let bob = try await Device(server.base, token: "nobody's")
      await #expect(throws: SyncProblem.unauthorized) { try await bob.sync.exchange() }
    }
  }
}

extension ServerOptions {
  /// Without a limit to the rate: the devices of these tests ask as fast as they can.
  fileprivate static var unlimited: ServerOptions {
    var options = ServerOptions()
    (options.requestsPerSecond, options.burst) = (1e6, 1e6)
    return options
  }
}
