import Foundation

/// A quantity of a day's sky, sampled from before the day's beginning to after its end.
struct Samples {
  let quantity: (Double) -> Double
  let span: Range<Double>
  let times: [Double]
  let values: [Double]

  /// Samples a quantity from one step before the span to at least one step after it.
  init(in span: Range<Double>, every step: Double = 600, of quantity: @escaping (Double) -> Double) {
    let steps = Int(((span.upperBound - span.lowerBound) / step).rounded(.up))
    self.quantity = quantity
    self.span = span
    times = (-1...steps + 1).map { span.lowerBound + Double($0) * step }
    values = times.map(quantity)
  }

  /// The least and greatest value in the span.
  var range: ClosedRange<Double> {
    func greatest(_ sign: Double) -> Double {
      let inside = times.indices.filter { span.contains(times[$0]) }
      let ends = [span.lowerBound, span.upperBound].map { sign * quantity($0) }
      guard let index = inside.max(by: { sign * values[$0] < sign * values[$1] }) else { return max(ends[0], ends[1]) }
      let turning = Self.maximum(from: max(span.lowerBound, times[index - 1]), to: min(span.upperBound, times[index + 1])) {
        sign * quantity($0)
      }
      return max(sign * quantity(turning), ends[0], ends[1])
    }
    let least = -greatest(-1)
    return least...max(least, greatest(1))
  }

  /// Returns where a quantity with one peak is highest, to a tenth of a second.
  static func maximum(from start: Double, to end: Double, of quantity: (Double) -> Double) -> Double {
    var (low, high) = (start, end)
    while high - low > 0.1 {
      let third = (high - low) / 3
      if quantity(low + third) < quantity(high - third) { low += third } else { high -= third }
    }
    return (low + high) / 2
  }
}

/// The moments in a span at which a quantity passes a threshold.
struct Crossings {
  /// The instants at which the quantity rises to the threshold, in order.
  private(set) var upward: [Date] = []
  /// The instants at which the quantity falls below the threshold, in order.
  private(set) var downward: [Date] = []
  private let samples: Samples
  private let threshold: Double

  /// Looks for the crossings of a sampled quantity.
  ///
  /// Between two samples on different sides lies one crossing. Where the quantity turns back close to the threshold between samples on
  /// one side, the turning point is sought, and if it is on the other side there are two.
  init(of samples: Samples, at threshold: Double = 0) {
    self.samples = samples
    self.threshold = threshold
    let (times, values) = (samples.times, samples.values.map { $0 - threshold })
    for index in 1..<times.count {
      add(times[index - 1], times[index], from: values[index - 1], to: values[index])
      // A body moves less than 0.35 degrees in altitude in half a step around its turning point.
      guard index + 1 < times.count, abs(values[index]) < 0.35 else { continue }
      let around = values[index - 1...index + 1]
      guard around.allSatisfy({ $0 < 0 }) || !around.contains(where: { $0 < 0 }) else { continue }
      let sign: Double = values[index] < 0 ? 1 : -1
      guard sign * values[index] >= sign * values[index - 1], sign * values[index] > sign * values[index + 1] else { continue }
      let turning = Samples.maximum(from: times[index - 1], to: times[index + 1]) { sign * samples.quantity($0) }
      let extreme = samples.quantity(turning) - threshold
      add(times[index - 1], turning, from: values[index - 1], to: extreme)
      add(turning, times[index + 1], from: extreme, to: values[index + 1])
    }
    upward.sort()
    downward.sort()
  }

  /// The number of seconds by which the worst crossing moves if the altitude is wrong by 0.01 degrees; `nil` without crossings.
  var sensitivity: Double? {
    (upward + downward).map(\.timeIntervalSince1970).map { time in
      0.6 / abs(samples.quantity(time + 30) - samples.quantity(time - 30))
    }.max()
  }

  /// Halves a step until the crossing in it is known to a fiftieth of a second.
  private mutating func add(_ start: Double, _ end: Double, from first: Double, to last: Double) {
    guard (first < 0) != (last < 0) else { return }
    var (low, high) = (start, end)
    while high - low > 0.02 {
      let middle = (low + high) / 2
      if (samples.quantity(middle) < threshold) == (first < 0) { low = middle } else { high = middle }
    }
    guard samples.span.contains(high) else { return }
    if first < 0 { upward.append(Date(timeIntervalSince1970: high)) } else { downward.append(Date(timeIntervalSince1970: high)) }
  }
}
