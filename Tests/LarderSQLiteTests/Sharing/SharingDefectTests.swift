import Foundation
import Larder
import LarderSQLite
import LarderTesting
import Synchronization
import Testing

/// A SQLite backend that shares in a wrong way, which the conformance suite must find.
private final class DefectiveSharing: StorageBackend {
  enum Defect: String, CaseIterable, Sendable {
    case opensExclusive, seesNothingWhenItBegins, seesNothing, dropsTombstones, tellsAgain, neverCancels, tellsNoAddresses

    var brokenRules: Set<String> {
      switch self {
      case .opensExclusive: Set(BackendRequirement.all.filter { $0.name != "otherAccessIsServedOrRefused" }.map(\.name))
      case .seesNothingWhenItBegins: ["aCommitBeginsWithWhatOthersDid"]
      case .seesNothing: ["othersCommitsAreTold", "forgottenTombstonesAreMadeGood"]
      case .dropsTombstones: ["othersCommitsAreTold"]
      case .tellsAgain: ["othersCommitsAreTold"]
      case .neverCancels: ["aCancelledCommitLeavesNothing"]
      case .tellsNoAddresses: ["forgottenTombstonesAreMadeGood"]
      }
    }
  }

  private let inner: SQLiteBackend
  private let defect: Defect

  init(_ file: URL, _ defect: Defect) {
    inner = SQLiteBackend(file: file)
    self.defect = defect
  }

  var name: String { inner.name }
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    var options = options
    if defect == .opensExclusive, options.access == .shared { options.access = .exclusive }
    options.lockTimeout = .milliseconds(20)
    return try inner.open(options, visit)
  }
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { try inner.recover(report) }
  func commit(_ batch: WriteBatch) throws(RepositoryError) { try inner.commit(batch) }
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    let foreign = try inner.beginCommit(after: revision, durability)
    return defect == .seesNothingWhenItBegins ? nil : foreign
  }
  func cancelCommit() { if defect != .neverCancels { inner.cancelCommit() } }
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    guard let foreign = try inner.foreignCommits(after: revision) else {
      return defect == .tellsAgain ? ForeignCommits(commit: revision, records: []) : nil
    }
    switch defect {
    case .seesNothing: return nil
    case .dropsTombstones:
      return ForeignCommits(commit: foreign.commit, records: foreign.records.filter { $0.value != nil }, addresses: foreign.addresses)
    case .tellsNoAddresses: return ForeignCommits(commit: foreign.commit, records: foreign.records)
    default: return foreign
    }
  }
  func flush() throws(RepositoryError) { try inner.flush() }
  func checkpoint() throws(RepositoryError) { try inner.checkpoint() }
  func verify() -> VerifyReport { inner.verify() }
  func backup(to url: URL) throws(RepositoryError) { try inner.backup(to: url) }
  func close() throws(RepositoryError) { try inner.close() }
}

@Suite("The rules of sharing", .timeLimit(.minutes(15)))
struct SharingDefectTests {
  private let rules = BackendRequirement.all.filter { rule in
    func applies(_ capabilities: Set<BackendCapability>) -> Bool {
      rule.applies(to: .file(named: "store.sqlite", capabilities: capabilities) { SQLiteBackend(file: $0) })
    }
    return !applies([.backup, .handles]) && applies([.backup, .handles, .sharing])
  }

  @Test func everyRuleIsBrokenBySomeDefect() {
    let broken = DefectiveSharing.Defect.allCases.dropFirst().reduce(into: Set<String>()) { $0.formUnion($1.brokenRules) }
    #expect(rules.count == 5)
    #expect(Set(rules.map(\.name)).subtracting(broken) == ["sharersAreTogetherAndAlone"])  // which `opensExclusive` breaks
  }

  @Test(arguments: DefectiveSharing.Defect.allCases)
  fileprivate func aDefectIsFoundByItsRulesAndNoOther(_ defect: DefectiveSharing.Defect) {
    let factory = BackendFactory.file(named: "store.sqlite", capabilities: [.sharing]) { DefectiveSharing($0, defect) }
    var failed: Set<String> = []
    for rule in rules {
      do throws(ConformanceFailure) { try rule.check(factory) } catch { failed.insert(error.requirement.name) }
    }
    #expect(failed == defect.brokenRules.intersection(rules.map(\.name)))
  }
}
