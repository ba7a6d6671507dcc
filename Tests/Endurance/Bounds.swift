import Foundation

/// The growth that is still called none.
package struct Bounds: Sendable {
  /// The cost of a use in the last tenth, divided by that in the second.
  package var costRatio: Double
  /// The costs below which the clock is too coarse to compare them, in nanoseconds a tenth.
  package var leastTime: Double
  /// The bytes that may stay allocated whatever the number of uses: caches of threads, a buffer that has doubled.
  package var bytes: Double
  /// The bytes that may stay allocated for each use, which is less than the smallest allocation.
  package var bytesPerUse: Double
  /// The descriptors that may be open for a moment by work beside the uses.
  package var descriptors: Int

  package init(
    costRatio: Double, leastTime: Double = 2_000_000, bytes: Double = 96 * 1_024, bytesPerUse: Double = 4, descriptors: Int = 2
  ) {
    self.costRatio = costRatio
    self.leastTime = leastTime
    self.bytes = bytes
    self.bytesPerUse = bytesPerUse
    self.descriptors = descriptors
  }

  /// Returns what has grown beyond the bounds, in words; empty when nothing has.
  /// - Parameter buffers: The bytes that bounded buffers may come to hold.
  package func excesses(of course: Course, buffers: Int = 0) -> [String] {
    var excesses: [String] = []
    let tenth = Double(course.uses) / 10
    if course.lastCost * tenth > leastTime, course.costRatio > costRatio {
      excesses.append(
        String(format: "the last tenth cost %.2f times the second, at most %.2f", course.costRatio, costRatio))
    }
    let bytes = bytes + Double(buffers) + bytesPerUse * tenth * 8
    if Double(course.growth) > bytes { excesses.append("\(course.growth) more bytes are allocated, at most \(Int(bytes))") }
    if course.descriptorGrowth > descriptors {
      excesses.append("\(course.descriptorGrowth) more descriptors are open, at most \(descriptors)")
    }
    return excesses
  }
}
