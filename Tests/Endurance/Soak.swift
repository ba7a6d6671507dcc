import Foundation
import LarderTesting

/// A run over all scenarios, or rounds of them.
struct Soak {
  private let arguments: Arguments
  private let scenarios: [Scenario]
  private let bounds: Bounds
  private var random: SeededGenerator

  /// The number of times that growth must be seen before it is believed: on a busy machine one course may cost more by chance.
  private static let attempts = 3

  init(_ arguments: Arguments) {
    self.arguments = arguments
    scenarios = Scenarios.all.filter { arguments.only.isEmpty || $0.name.contains(arguments.only) }
    bounds = Bounds(costRatio: arguments.costRatio)
    let seed = arguments.seed ?? .random(in: .min ... .max)
    random = SeededGenerator(seed: seed)
    if arguments.minutes != nil { Endurance.say("the rounds of --seed \(seed)") }
  }

  /// Runs everything, and returns whether nothing has grown.
  mutating func run() async throws -> Bool {
    if arguments.isList {
      for scenario in scenarios { Endurance.say(scenario.name) }
      return true
    }
    guard !scenarios.isEmpty else { throw WrongAnswer(description: "expected a scenario with '\(arguments.only)', see --list") }
    guard let minutes = arguments.minutes else { return try await round(scenarios) }
    let end = ContinuousClock.now + .seconds(minutes * 60)
    var (number, isSound) = (0, true)
    while isSound, ContinuousClock.now < end {
      number += 1
      Endurance.say("round \(number)")
      isSound = try await round(scenarios.shuffled(using: &random), until: end)
    }
    return isSound
  }

  /// Runs scenarios one after the other, and then some of them in a mix.
  private mutating func round(_ scenarios: [Scenario], until end: ContinuousClock.Instant? = nil) async throws -> Bool {
    var isSound = true
    for scenario in scenarios {
      if let end, ContinuousClock.now >= end { return isSound }
      if try await !check(scenario) { isSound = false }
    }
    guard end != nil, scenarios.count > 2 else { return isSound }
    let mix = Scenario.mix(Array(scenarios.shuffled(using: &random).prefix(Int.random(in: 2...4, using: &random))), seed: random.next())
    return try await check(mix) && isSound
  }

  /// Runs a scenario until a course shows no growth, and returns whether one did.
  private func check(_ scenario: Scenario) async throws -> Bool {
    let share = arguments.share / 100
    let uses = max(50, Int(Double(scenario.uses) * (share < 1 ? share / Double(scenario.weight) : share)))
    for attempt in 1...Self.attempts {
      let course: Course
      do {
        course = try await Place.with { try await Course.run(scenario, uses: uses, in: $0) }
      } catch {
        Endurance.say("\(scenario.name): FAILED: \(error)")
        return false
      }
      let excesses = bounds.excesses(of: course, buffers: scenario.bytes + scenario.bytesPerUse * uses)
      Endurance.say(course.line + (excesses.isEmpty ? "" : attempt < Self.attempts ? "  once more" : "  GROWS"))
      if excesses.isEmpty { return true }
      for excess in excesses { Endurance.say("    \(excess)") }
    }
    return false
  }
}

extension Scenario {
  /// Makes the uses of several scenarios in a random order.
  static func mix(_ scenarios: [Scenario], seed: UInt64) -> Scenario {
    Scenario(
      "mix of " + scenarios.map(\.name).joined(separator: ", "), uses: scenarios.map(\.uses).min() ?? 0,
      weight: scenarios.map(\.weight).max() ?? 1,
      bytes: scenarios.map(\.bytes).reduce(0, +), bytesPerUse: scenarios.map(\.bytesPerUse).max() ?? 0
    ) { place in
      var subjects: [Subject] = []
      for (number, scenario) in scenarios.enumerated() {
        let own = Place(directory: place.directory.appendingPathComponent("\(number)", isDirectory: true))
        try FileManager.default.createDirectory(at: own.directory, withIntermediateDirectories: true)
        subjects.append(try await scenario.prepare(own))
      }
      return Subject { [subjects] number in
        var random = SeededGenerator(seed: seed &+ UInt64(number))
        let subject = Int(random.next() % UInt64(subjects.count))
        try await subjects[subject].use(number)
      } settle: { [subjects] in
        for subject in subjects { try await subject.settle() }
      } end: { [subjects] in
        for subject in subjects { try await subject.end() }
      }
    }
  }
}

extension Course {
  /// The figures in one line.
  var line: String {
    let name = name.padding(toLength: max(36, name.count), withPad: " ", startingAt: 0)
    let figures = String(
      format: "%7d uses, %9.0f ns, last %9.0f ns (%.2f), allocated %6d KB %+7d bytes, RSS %6d KB %+6d KB, descriptors %d %+d", uses,
      firstCost,
      lastCost, costRatio, bounds[10].allocatedBytes >> 10, growth, bounds[10].residentBytes >> 10,
      (bounds[10].residentBytes - bounds[2].residentBytes) >> 10, bounds[10].descriptorCount, descriptorGrowth)
    return name + figures
  }
}
