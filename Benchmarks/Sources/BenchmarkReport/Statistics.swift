/// The middle of some values and what lies around it.
package struct Statistics: Equatable, Sendable {
  package let median: Double
  /// The values below which a quarter and three quarters lie.
  package let lowerQuartile: Double
  package let upperQuartile: Double

  /// Takes the statistics of values, or none where there are none.
  package init?(_ values: [Double]) {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    (median, lowerQuartile, upperQuartile) = (Self.at(0.5, sorted), Self.at(0.25, sorted), Self.at(0.75, sorted))
  }

  /// Takes the statistics of the ratios of values that were measured in the same rounds, which a slow moment of the machine met together.
  package init?(_ values: [Double], over others: [Double]) {
    self.init(zip(values, others).filter { $0.1 > 0 }.map { $0.0 / $0.1 })
  }

  private static func at(_ share: Double, _ sorted: [Double]) -> Double {
    let place = share * Double(sorted.count - 1)
    let (low, high) = (Int(place.rounded(.down)), Int(place.rounded(.up)))
    return sorted[low] + (sorted[high] - sorted[low]) * (place - Double(low))
  }
}
