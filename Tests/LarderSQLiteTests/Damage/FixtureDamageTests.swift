import Foundation
import TestSupport
import Testing

/// One changed bit, or another length, of one file of each fixture; with `LARDER_TORTURE` each bit and each length.
@Suite("Damage to the fixtures", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct FixtureDamageTests {
  @Test(arguments: FormatFixture.names) func noDamageIsSilent(_ name: String) async throws {
    let seed = try #require(Seeds.list(1, for: "noDamageIsSilent, \(name)").first)
    let (tally, problems) = try await DispatchQueue.global().run {
      Result {
        let damage = try FixtureDamage(name)
        try damage.run(sampled: Torture.isOn ? nil : 40, seed: seed)
        return (damage.tally, damage.problems)
      }
    }.get()
    for problem in problems.prefix(20) { Issue.record("\(name): \(problem)") }
    print("figures: bits and lengths of \(name): \(tally); \(problems.count) problems")
    #expect(tally.refused + tally.reported > 20)
  }
}
