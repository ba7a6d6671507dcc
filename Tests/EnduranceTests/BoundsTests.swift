import Endurance
import Testing

@Suite("Bounds of growth") struct BoundsTests {
  private let bounds = Bounds(costRatio: 1.2)

  /// Makes a course of 10,000 uses that cost 1 ms a tenth more after each tenth, and so on.
  private func course(time: UInt64 = 0, bytes: Int = 0, descriptors: Int = 0) -> Course {
    var elapsed: UInt64 = 0
    let parts = (0...10).map { part in
      defer { elapsed += 10_000_000 + time * UInt64(part) }
      return Consumption(
        processorTime: elapsed, referenceTime: UInt64(part) * 1_000, allocatedBytes: 1_000_000 + bytes * 1_000 * part, residentBytes: 0,
        descriptorCount: 5 + descriptors * part)
    }
    return Course(name: "made up", uses: 10_000, bounds: parts)
  }

  @Test func aFlatCourseHasNoExcess() { #expect(bounds.excesses(of: course()).isEmpty) }

  @Test func aCostThatGrowsIsFound() {
    #expect(bounds.excesses(of: course(time: 200_000)).isEmpty)
    let excesses = bounds.excesses(of: course(time: 500_000))
    #expect(excesses.count == 1 && excesses[0].contains("cost"), "\(excesses)")
  }

  @Test func aReferenceThatWasSlowedOnceIsNoGrowth() {
    var parts = course().bounds
    for part in 2...10 { parts[part].referenceTime += 7_000 }
    #expect(Course(name: "made up", uses: 10_000, bounds: parts).costRatio < 1.01)
  }

  @Test func thirtyTwoBytesAUseAreFound() {
    #expect(bounds.excesses(of: course(bytes: 4)).isEmpty)
    let excesses = bounds.excesses(of: course(bytes: 32))
    #expect(excesses == ["256000 more bytes are allocated, at most 130304"], "\(excesses)")
  }

  @Test func aDescriptorATenthIsFound() {
    let excesses = bounds.excesses(of: course(descriptors: 1))
    #expect(excesses == ["8 more descriptors are open, at most 2"], "\(excesses)")
  }
}
