import Foundation
import Larder
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct ConformanceTests {
  @Test(arguments: TestBackend.allCases, BackendRequirement.all)
  func conforms(_ backend: TestBackend, _ requirement: BackendRequirement) throws {
    try requirement.check(backend.factory)
  }

  @Test func requirementsHaveNamesOfTheirOwn() {
    #expect(Set(BackendRequirement.all).count == BackendRequirement.all.count)
  }

  @Test func everyRequirementIsBrokenBySomeDefect() {
    let broken = LogDefect.allCases.reduce(into: Set<String>()) { $0.formUnion($1.brokenRules) }
    let factory = BackendFactory.file(named: "store.log") { LogBackend(file: $0) }
    // The rules of sharing have their own defects, in SharingDefectTests.
    #expect(broken == Set(BackendRequirement.all.filter { $0.applies(to: factory) }.map(\.name)))
  }

  @Test(arguments: LogDefect.allCases)
  func aDefectIsFoundByItsRequirementsAndNoOther(_ defect: LogDefect) {
    let factory = BackendFactory.file(named: "store.log") { LogBackend(file: $0, defect: defect) }
    var failed: Set<String> = []
    for requirement in BackendRequirement.all {
      // The large ones take half a second, and do nothing new to a defect that is not about size.
      let isLarge = ["tenThousandRecordsAreKept", "aMebibyteIsKept"].contains(requirement.name)
      if isLarge, !defect.brokenRules.contains(requirement.name) { continue }
      do throws(ConformanceFailure) {
        try requirement.check(factory)
      } catch {
        failed.insert(requirement.name)
        #expect(error.requirement == requirement)
        #expect(error.description.contains(requirement.name))
      }
    }
    #expect(defect.isBroad ? failed.isSuperset(of: defect.brokenRules) : failed == defect.brokenRules, "\(failed.sorted())")
  }

  @Test func aRequirementThatNeedsMoreDoesNotApply() throws {
    let factory = TestBackend.memory.factory
    let needing = BackendRequirement.all.filter { !$0.applies(to: factory) }
    #expect(needing.map(\.name).contains("aBackupEqualsTheStore"))
    for requirement in needing { try requirement.check(factory) }
  }
}
