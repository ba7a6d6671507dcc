import Foundation
import ModelWorld
import TestSupport
import Testing

/// Random sequences of everything that can be done with a store, a cache and blobs, and of everything that can happen to them.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ModelWorldTests {
  /// The steps of one world.
  private static let steps = 2_500

  @Test(arguments: Backing.allCases)
  func aWorldDoesWhatItsModelDoes(_ backing: Backing) async throws {
    let seeds =
      switch backing {
      case .memory: Torture.count(8, full: 1_700)
      case .json: Torture.count(5, full: 1_700)
      case .sqlite, .shared: Torture.count(2, full: 350)
      }
    let clock = ContinuousClock.now
    var count = 0
    for seed in Seeds.list(seeds, for: "worlds on \(backing)") {
      do {
        count += try await World(backing, seed: seed).run(Self.steps)
      } catch {
        Issue.record("\(error)")
        return
      }
    }
    print("figures: model operations \(count), differences 0, \(backing) in \(clock.duration(to: .now))")
  }

  /// Runs in which crashes, migrations, damage and the like come twenty times as often.
  @Test(arguments: Backing.allCases)
  func aWorldInWhichMuchHappensDoesWhatItsModelDoes(_ backing: Backing) async throws {
    var count = 0
    for seed in Seeds.list(Torture.count(2, full: 150), for: "eventful worlds on \(backing)") {
      do {
        count += try await World(backing, seed: seed, isEventful: true).run(Self.steps / 5)
      } catch {
        Issue.record("\(error)")
        return
      }
    }
    print("figures: model operations \(count), differences 0, \(backing), eventful")
  }

  @Test(arguments: Mistake.allCases)
  func everyPlantedMistakeIsFound(_ mistake: Mistake) async throws {
    var found: Difference?
    for seed in Seeds.list(100, for: "worlds with \(mistake)") where found == nil {
      do {
        try await World(.json, seed: seed, isEventful: true, mistake: mistake).run(Self.steps / 5)
      } catch let difference as Difference {
        found = difference
      } catch {}  // an error of the store itself shows nothing about the comparison
    }
    #expect(found != nil, "\(mistake)")
    print("model tooth \(mistake): \(found.map { "\($0)".prefix(300) } ?? "nothing")")
  }
}
