import Dispatch
import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Calls of each workload fail: every third with one fault in turn, and so many that each site meets all; with `LARDER_TORTURE` each call has
/// all faults, once and for ever.
@Suite("Every call of a JSON store fails once, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct FaultMatrixTests {
  private struct Figures: Sendable {
    /// Recorded by the test: another thread does not know whose they are.
    var violations: [String] = []
    var faults = 0
    var images = 0
    var sites: Set<String> = []
  }

  /// The calls of each workload, and the faults that they are given.
  ///
  /// The workloads share one choice, so that a site which only some of them reach meets all faults there.
  private struct Plan: Sendable {
    var seed: UInt64
    var trials: [String: [(point: FaultPoint, faults: [Fault])]] = [:]
    /// The failures of workloads without a fault.
    var violations: [String: String] = [:]
  }

  private static let plan: Plan = {
    var plan = Plan(seed: Seeds.list(1, for: "everyCallFailsAndLifeGoesOn")[0])
    var calls: [[FaultPoint]] = []
    for workload in FaultWorkload.all {
      let trial = FaultTrial(workload, seed: plan.seed)
      trial.faulty.noteSites()
      do { try trial.run() } catch { plan.violations[workload.name] = "\(workload): without a fault: \(error)" }
      calls.append(trial.faulty.calls.filter { $0.key.hasPrefix(workload.only) })
    }
    let rotation = FaultRotation(seed: plan.seed, isRepeating: true)
    for ((workload, points), faults) in zip(zip(FaultWorkload.all, calls), rotation.faults(of: calls)) {
      plan.trials[workload.name] = zip(points, faults).map { point, usual in
        (point, Torture.isOn ? Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) : usual)
      }
    }
    return plan
  }()

  /// Runs a workload once for each call and fault.
  private static func explore(_ workload: FaultWorkload) -> Figures {
    var figures = Figures()
    let plan = plan
    if let violation = plan.violations[workload.name] {
      figures.violations.append(violation)
      return figures
    }
    for (number, (point, faults)) in (plan.trials[workload.name] ?? []).enumerated() {
      for fault in faults {
        let trial = FaultTrial(workload, point, fault, seed: plan.seed &+ UInt64(number), isThorough: Torture.isOn)
        do { try trial.run() } catch { figures.violations.append("\(workload): \(point): \(fault): \(error)") }
        if trial.faulty.hits > 0 { figures.sites.insert(point.key) }
        figures.faults += trial.faulty.hits
        figures.images += trial.images
      }
    }
    return figures
  }

  @Test(arguments: FaultWorkload.all) func everyCallFailsAndLifeGoesOn(_ workload: FaultWorkload) async throws {
    let clock = ContinuousClock.now
    let figures = await DispatchQueue.global().run { Self.explore(workload) }
    for violation in figures.violations { Issue.record("\(violation)") }
    print(
      "figures: faults \(figures.faults), sites \(figures.sites.count), images \(figures.images), \(workload), "
        + "\(clock.duration(to: .now))")
    // The seed chooses which calls fail, so the number varies: 15 to 33 faults of commits in eight seeds.
    #expect(figures.faults > (workload.only.isEmpty ? 8 : 0))
    try CallTrace.save("json-\(workload.name.filter(\.isLetter))")
  }

  /// A disk that stays full or broken from some call on, for a sample of the calls.
  @Test func aDiskThatGoesOnFailingLosesNothing() throws {
    let seed = try #require(Seeds.list(1, for: "aDiskThatGoesOnFailingLosesNothing").first)
    var random = SeededGenerator(seed)
    var faults = 0
    for workload in FaultWorkload.usual.dropLast() {
      let plain = FaultTrial(workload, seed: seed)
      try plain.run()
      for point in plain.faulty.calls.shuffled(using: &random).prefix(Torture.count(12, full: 100)) {
        guard let fault = Fault.all(of: point.call, isPermanent: true).randomElement(using: &random) else { continue }
        let trial = FaultTrial(workload, point, fault, seed: random.next())
        do { try trial.run() } catch { Issue.record("\(workload): \(point): \(fault): \(error)") }
        faults += trial.faulty.hits
      }
    }
    #expect(faults > 100)
    try CallTrace.save("json-permanent")
  }

  /// A way to put a main file in place whose name is not synced, and whose journal is not there to bring back what is in it.
  enum UnsyncedName: CaseIterable {
    case deletionsBesideAFullJournal, deletionsWithoutAJournal, laterDeletions, newStore, renewedStore

    /// The steps before the one that fails.
    var before: [FaultWorkload.Step] {
      switch self {
      case .deletionsBesideAFullJournal: [.save(["a", "b"], size: 200), .fail(.write, "-journal-tmp", ENOSPC)]
      case .deletionsWithoutAJournal: [.save(["a", "b"], size: 200), .reopen]
      case .laterDeletions: [.save(["a", "b"], size: 200), .fail(.write, "-journal-tmp", ENOSPC), .clear(["-b"])]
      case .newStore, .renewedStore: []
      }
    }

    /// The step in which the sync fails.
    var failing: FaultWorkload.Step {
      switch self {
      case .deletionsBesideAFullJournal, .deletionsWithoutAJournal, .laterDeletions: .clear(["-a"])
      case .newStore, .renewedStore: .reopen
      }
    }
  }

  /// Before, a power cut then brought back the main file before it, which was refused as older than the next journal, or none.
  @Test(arguments: UnsyncedName.allCases) func aMainFileWhoseNameIsNotSyncedIsRenewedBeforeTheNextJournal(_ name: UnsyncedName) throws {
    let trial = FaultTrial(FaultWorkload(name: "a name that is not synced", steps: []), seed: 1, isThorough: true)
    if name != .newStore { try trial.open() }
    for step in name.before { try trial.apply(step) }
    // Opening syncs the directory before it reads.
    let isOpening = name == .newStore || name == .renewedStore
    try trial.apply(.fail(.syncDirectory, "/data/app", EIO, skipping: isOpening ? 1 : 0))
    try trial.apply(.fail(.remove, "/spots.json", EIO))
    let failure = #expect(throws: RepositoryError.self) { try name == .newStore ? trial.open() : trial.apply(name.failing) }
    #expect(failure?.code == (isOpening ? .inputOutput : .outcomeUnknown))
    try trial.apply(.drop)
    try trial.apply(.save(["c"]))
    try trial.checkPowerLoss("behind a name that is not synced")
    try trial.close()
    try CallTrace.save("json-\(name)")
  }

  /// A way to remove or replace a journal whose directory cannot be synced then.
  enum UnsyncedRemoval: CaseIterable {
    case closing, checkpoint, unusedJournal
  }

  /// Before, a power cut brought the journal back beside a main file that did not name it, and the store was refused.
  @Test(arguments: UnsyncedRemoval.allCases) func aJournalWhoseRemovalIsNotSyncedAddsNothing(_ removal: UnsyncedRemoval) throws {
    let trial = FaultTrial(FaultWorkload(name: "a removal that is not synced", steps: []), seed: 1, isThorough: true)
    try trial.open()
    if removal == .unusedJournal {
      // The journal's own first write is before that of a commit.
      try trial.apply(.fail(.write, "-journal-tmp", ENOSPC, skipping: 1))
      #expect(throws: RepositoryError.self) { try trial.apply(.save(["a"])) }
      try trial.apply(.drop)
    } else {
      try trial.apply(.save(["a", "b"], size: 200))
    }
    // The sync of the main file's name comes before.
    try trial.apply(.fail(.syncDirectory, "/data/app", EIO, skipping: removal == .unusedJournal ? 0 : 1))
    #expect(throws: RepositoryError.self) { try trial.apply(removal == .checkpoint ? .checkpoint : .reopen) }
    if removal != .checkpoint { try trial.apply(.drop) }
    if removal != .unusedJournal { try trial.apply(.clear(["-a"])) }
    try trial.checkPowerLoss("behind a removal that is not synced")
    try trial.apply(.save(["c"]))
    try trial.checkPowerLoss("with the next journal")
    try trial.close()
    try CallTrace.save("json-removed-\(removal)")
  }

  /// A main file of more than 2 MiB that is written beside commits is synced in parts.
  @Test func aMainFileThatIsSyncedInPartsFailsAtTheFirst() throws {
    let trial = FaultTrial(FaultWorkload(name: "a large main file", steps: []), seed: 1)
    try trial.open()
    try trial.apply(.save(["a", "b", "c"], size: 1_050_000))
    for (number, fault) in Fault.all(of: .sync).enumerated() {
      for step: FaultWorkload.Step in [.begin, .fail(.sync, "spots.json-tmp", fault.errorNumber), .work] { try trial.apply(step) }
      let failure = #expect(throws: RepositoryError.self) { try trial.apply(.next) }
      #expect(failure?.code == fault.code && trial.faulty.scriptedHits == number + 1)
      try trial.apply(.save(["d"]))
    }
    try trial.apply(.reopen)
    try CallTrace.save("json-parts")
  }
}
