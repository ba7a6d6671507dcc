import Foundation
import Testing

@testable import Astronomy

@Suite struct CrossingsTests {
  private func crossings(
    in span: Range<Double> = 0..<86_400, at threshold: Double = 0, of quantity: @escaping (Double) -> Double
  ) -> Crossings {
    Crossings(of: Samples(in: span, of: quantity), at: threshold)
  }

  private func seconds(_ dates: [Date]) -> [Double] { dates.map { ($0.timeIntervalSince1970).rounded() } }

  @Test func aCrossingIsFoundToAFractionOfASecond() {
    let found = crossings { $0 - 12_345.6 }
    #expect(found.upward.count == 1 && abs(found.upward[0].timeIntervalSince1970 - 12_345.6) < 0.05)
    #expect(found.downward.isEmpty)
    let below = crossings(at: -6) { 100 - $0 }
    #expect(below.upward.isEmpty && abs(below.downward[0].timeIntervalSince1970 - 106) < 0.05)
  }

  /// A parabola as flat as the path of a body: 0.0136 degrees in half a step.
  private func peak(at time: Double, height: Double) -> (Double) -> Double { { height - ($0 - time) * ($0 - time) / 90_000 * 0.0136 } }

  @Test(arguments: [300.0, 40_100, 40_300, 40_500, 86_100, 86_200, 20, 86_390])
  func twoCrossingsInsideOneStepAreFound(_ time: Double) {
    // A minute and a half above zero.
    let half = 45.0
    let height = half * half / 90_000 * 0.0136
    let inside = { (range: Range<Double>, moment: Double) in range.contains(moment) ? [moment] : [] }
    let found = crossings(of: peak(at: time, height: height))
    #expect(seconds(found.upward) == inside(0..<86_400, time - half))
    #expect(seconds(found.downward) == inside(0..<86_400, time + half))
    let mirrored = crossings { -self.peak(at: time, height: height)($0) }
    #expect(seconds(mirrored.upward) == inside(0..<86_400, time + half))
    #expect(seconds(mirrored.downward) == inside(0..<86_400, time - half))
  }

  @Test func aTurningPointThatDoesNotReachTheThresholdIsNoCrossing() {
    for time in stride(from: 40_000.0, through: 40_600, by: 37) {
      let found = crossings(of: peak(at: time, height: -0.000_01))
      #expect(found.upward.isEmpty && found.downward.isEmpty)
    }
  }

  @Test func theEndOfTheSpanBelongsToTheNextOne() {
    #expect(crossings { $0 - 86_400.5 }.upward.isEmpty)
    #expect(crossings { $0 + 0.5 }.upward.isEmpty)
    #expect(crossings(in: 86_400..<172_800) { $0 - 86_400.5 }.upward.count == 1)
  }

  @Test func aSpanNeedNotBeAMultipleOfTheStep() {
    #expect(crossings(in: 0..<82_800.5) { $0 - 82_800.2 }.upward.count == 1)
    #expect(crossings(in: 0..<82_800.5) { $0 - 82_800.8 }.upward.isEmpty)
  }

  @Test func theRangeHasItsTurningPointsAndItsEnds() {
    let arch = Samples(in: 0..<86_400, of: peak(at: 40_123, height: 7)).range
    #expect(abs(arch.upperBound - 7) < 0.000_001)
    #expect(abs(arch.lowerBound - peak(at: 40_123, height: 7)(86_400)) < 0.000_001)
    let slope = Samples(in: 0..<86_400) { $0 }.range
    #expect(slope == 0...86_400)
  }
}
