import Foundation
import Testing

/// Real devices and a real server, with a network between them that cannot be trusted.
@Suite(.enabled(if: BuiltPrograms.hasWeatherSpots), .timeLimit(.minutes(60))) struct SpotsProxyTests {
  /// Two devices whose clocks are wrong by ten years to either side, each behind a proxy of its own.
  private struct Pair {
    let devices: [SpotsDevice]
    let proxies: [ChaosProxy]

    init(_ server: SpotsServer, in directory: TemporaryDirectory) throws {
      proxies = [try ChaosProxy(to: server.port), try ChaosProxy(to: server.port)]
      devices = [
        SpotsDevice("old.sqlite", in: directory, now: "2016-11-21T12:00:00Z"),
        SpotsDevice("young.json", in: directory, now: "2036-11-21T12:00:00Z"),
      ]
    }

    func set(_ rules: ChaosProxy.Rules) { for proxy in proxies { proxy.set(rules) } }

    func close() { for proxy in proxies { proxy.close() } }

    /// Gives both devices the spot that they edit.
    func begin() async throws {
      try await devices[0].addPier()
      for (device, proxy) in zip(devices, proxies) { try await device.expect("sync", proxy.base) }
    }

    /// Has both devices do something at once.
    func both(_ body: @escaping @Sendable (SpotsDevice, ChaosProxy) async throws -> Void) async throws {
      let (devices, proxies) = (devices, proxies)
      async let first: Void = body(devices[0], proxies[0])
      try await body(devices[1], proxies[1])
      try await first
    }

    /// Syncs over a network without faults, and returns the row of the spot, which both devices must have.
    func end(visits: Int) async throws -> String {
      set(.init())
      for device in devices + devices { try await device.expect("sync") }
      let texts = [try await devices[0].exported(), try await devices[1].exported()]
      #expect(texts[0] == texts[1])
      for device in devices {
        #expect(try await device.visits() == visits)
        let state = try await device.expect("sync", "status", "--json")
        #expect(try state.number("pending") == 0 && state.number("rejected") == 0)
        #expect(try await device.run("verify").code == 0)
      }
      return texts[0].split(separator: "\n").last.map(String.init) ?? ""
    }
  }

  private func run(_ test: (Pair) async throws -> Void) async throws {
    let directory = try TemporaryDirectory()
    try await SpotsServer.run(in: directory) { server in
      let pair = try Pair(server, in: directory)
      defer { pair.close() }
      try await pair.begin()
      try await test(pair)
    }
  }

  @Test func aConnectionThatIsCutAtAnyByteLosesAndDoublesNothing() async throws {
    let step = SpotsCounts.value("LARDER_PROXY_STEP", 97, torture: 1)
    try await run { pair in
      // What one exchange of one edit takes: a push, its answer, a question, its answer.
      try await pair.devices[0].expect("visit", "Pier")
      pair.proxies[0].set(.init())
      let exchange = try await pair.devices[0].expect("sync", "--json")
      let length = pair.proxies[0].passed
      #expect(try exchange.number("pushed") == 1)
      var visits = 1
      var tags: Set<String> = []
      // The numbers in the messages grow by some digits.
      for (round, at) in stride(from: 1, through: length + 64, by: step).enumerated() {
        try await pair.both { device, _ in
          try await device.expect("visit", "Pier")
          let name = device === pair.devices[0] ? "a" : "b"
          switch round % 4 {
          case 1 where round < 80: try await device.expect("tag", "Pier", "+\(name)\(round)")
          case 3: try await device.expect("edit", "Pier", "--notes", "\(name) \(round)")
          default: break
          }
        }
        visits += 2
        if round % 4 == 1, round < 80 { tags.formUnion(["a\(round)", "b\(round)"]) }
        try await pair.both { device, proxy in
          proxy.set(.init(cut: at))
          let outcome = try await device.run("sync", "--timeout", "20")
          #expect([0, 69].contains(outcome.code), "\(outcome)")
        }
      }
      let row = try await pair.end(visits: visits)
      #expect(row.contains(",\(tags.sorted().joined(separator: " ")),"), "\(row)")
      print("figures: weather-spots cut at every \(step)th of \(length + 64) bytes, \(visits) visits counted")
    }
  }

  @Test func messagesThatComeTwiceChangeNothing() async throws {
    try await run { pair in
      pair.set(.init(repeats: true))
      for round in 1...10 {
        try await pair.both { device, _ in
          try await device.expect("visit", "Pier")
          try await device.expect("tag", "Pier", round.isMultiple(of: 2) ? "-pier" : "+pier")
          try await device.expect("sync")
        }
      }
      let row = try await pair.end(visits: 20)
      #expect(row.contains(",old,,20"))
    }
  }

  @Test func messagesThatComeLateAreWaitedFor() async throws {
    try await run { pair in
      for device in pair.devices { try await device.expect("visit", "Pier") }
      pair.set(.init(delay: 2))
      try await pair.both { device, _ in try await device.expect("sync", "--timeout", "60") }
      // And what is given up has come for all that, and is not counted again.
      for device in pair.devices { try await device.expect("visit", "Pier") }
      try await pair.both { device, _ in
        let outcome = try await device.run("sync", "--timeout", "3")
        #expect(outcome.code == 69 && outcome.errors.contains("no answer within"), "\(outcome)")
      }
      _ = try await pair.end(visits: 4)
    }
  }

  @Test func aConnectionThatNoLongerPassesAnythingIsGivenUp() async throws {
    try await run { pair in
      var visits = 0
      for stall in [0, 200, 400, 700, 900] {
        try await pair.both { device, proxy in
          try await device.expect("visit", "Pier")
          proxy.set(.init(stall: stall))
          let start = ContinuousClock.now
          let outcome = try await device.run("sync", "--timeout", "1")
          #expect(outcome.code == 69, "\(outcome)")
          // A push and a question, each with its own time. A machine with other work takes 30 seconds for the start of the two processes.
          #expect(ContinuousClock.now - start < .seconds(180))
        }
        visits += 2
      }
      _ = try await pair.end(visits: visits)
    }
  }
}
