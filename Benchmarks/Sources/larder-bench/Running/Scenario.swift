import BenchmarkReport

/// Work that is measured: who takes part, and the goals.
struct Scenario: Sendable {
  let name: String
  let group: Group
  let title: String
  /// The work that one value stands for.
  let operation: String
  /// The contender that ratios are given to.
  var base: String?
  var goals: [Goal] = []
  /// Sentences for the page: how it is measured, and why a peer is ahead where one is.
  var notes: [String] = []
  /// The reason for which a peer is ahead, where it is in the design and not a thing to mend.
  var reason: String?
  let run: @Sendable (Bench) async throws -> [Series]

  enum Group: String, CaseIterable, Sendable {
    case reading = "Reading"
    case saving = "Saving"
    case opening = "Opening"
    case queries = "Queries"
    case indexes = "Indexes"
    case observation = "Observation"
    case disk = "Disk and memory"
    case cache = "Cache and blobs"
    case growth = "Growth"
    case footprint = "Footprint"
  }

  static let all: [Scenario] =
    readingScenarios + savingScenarios + openingScenarios + queryScenarios + pagingScenarios + indexScenarios + observationScenarios
    + diskScenarios + memoryScenarios + cacheScenarios + blobScenarios + migrationScenarios + growthScenarios + footprintScenarios

  static func named(_ name: String) -> Scenario? { all.first { $0.name == name } }

  func report(_ records: Int, isQuick: Bool, _ engines: Set<Engine>) async throws -> ScenarioReport {
    let before = Machine.load
    let series = try await run(Bench(records: records, isQuick: isQuick, engines: engines, scenario: name))
    return ScenarioReport(
      name: name, group: group.rawValue, title: title, operation: operation, base: base, series: series, goals: goals, notes: notes,
      reason: reason,
      loads: [before, Machine.load])
  }
}
