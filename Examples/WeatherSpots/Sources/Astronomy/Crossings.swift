import Foundation

/// Samples of a quantity, such as the Sun's altitude, from before the start of a day to after its end.
struct Samples {
  let quantity: (Double) -> Double
  let span: Range<Double>
  let times: [Double]
  let values: [Double]

  /// Samples a quantity, given as a function of seconds since 1970, from one step before the span to at least one step after it.
  init(in span: Range<Double>, every step: Double = 600, of quantity: @escaping (Double) -> Double) {
    let steps = Int(((span.upperBound - span.lowerBound) / step).rounded(.up))
    self.quantity = quantity
    self.span = span
    // The samples outside the span give each sample in it two neighbours, which the search for turning points indexes.
    times = (-1...steps + 1).map { span.lowerBound + Double($0) * step }
    values = times.map(quantity)
  }

  /// Least and greatest value of the quantity in the span.
  var range: ClosedRange<Double> {
    func greatest(_ sign: Double) -> Double {
      let inside = times.indices.filter { span.contains(times[$0]) }
      let ends = [span.lowerBound, span.upperBound].map { sign * quantity($0) }
      // The extreme can lie at an end, and a skipped day of a zone has an empty span with no sample at all.
      guard let index = inside.max(by: { sign * values[$0] < sign * values[$1] }) else { return max(ends[0], ends[1]) }
      // Limited to the span: a higher value just before or after the day belongs to another day.
      let turning = Self.maximum(from: max(span.lowerBound, times[index - 1]), to: min(span.upperBound, times[index + 1])) {
        sign * quantity($0)
      }
      return max(sign * quantity(turning), ends[0], ends[1])
    }
    let least = -greatest(-1)
    // The two searches stop at different times, and a range whose end is below its start would trap.
    return least...max(least, greatest(1))
  }

  /// Returns the time of the maximum of a quantity with a single peak, to a tenth of a second.
  static func maximum(from start: Double, to end: Double, of quantity: (Double) -> Double) -> Double {
    var (low, high) = (start, end)
    while high - low > 0.1 {
      // Ternary search needs no derivative, which the interpolated positions do not offer.
      let third = (high - low) / 3
      if quantity(low + third) < quantity(high - third) { low += third } else { high -= third }
    }
    return (low + high) / 2
  }
}

/// The instants in a span at which a sampled quantity crosses a threshold.
struct Crossings {
  /// Instants at which the quantity rises to the threshold, in order.
  private(set) var upward: [Date] = []
  /// Instants at which the quantity falls below the threshold, in order.
  private(set) var downward: [Date] = []
  private let samples: Samples
  private let threshold: Double

  /// Finds the crossings of a sampled quantity.
  ///
  /// Two neighbouring samples on different sides of the threshold enclose one crossing. Where the quantity turns back close to the
  /// threshold between samples on the same side, the turning point is computed. If that point is on the other side, there are two
  /// crossings.
  init(of samples: Samples, at threshold: Double = 0) {
    self.samples = samples
    self.threshold = threshold
    let (times, values) = (samples.times, samples.values.map { $0 - threshold })
    for index in 1..<times.count {
      add(times[index - 1], times[index], from: values[index - 1], to: values[index])
      // Around its turning point a body's altitude changes by less than 0.35 degrees in half a step, so others cannot reach the threshold.
      guard index + 1 < times.count, abs(values[index]) < 0.35 else { continue }
      let around = values[index - 1...index + 1]
      guard around.allSatisfy({ $0 < 0 }) || !around.contains(where: { $0 < 0 }) else { continue }
      let sign: Double = values[index] < 0 ? 1 : -1
      // Greater-or-equal on one side only, so that of two equal samples just one counts as the turning point.
      guard sign * values[index] >= sign * values[index - 1], sign * values[index] > sign * values[index + 1] else { continue }
      let turning = Samples.maximum(from: times[index - 1], to: times[index + 1]) { sign * samples.quantity($0) }
      let extreme = samples.quantity(turning) - threshold
      add(times[index - 1], turning, from: values[index - 1], to: extreme)
      add(turning, times[index + 1], from: extreme, to: values[index + 1])
    }
    // Crossings around a turning point can be added out of order.
    upward.sort()
    downward.sort()
  }

  /// Number of seconds by which the most sensitive crossing moves for an error of 0.01 degrees, or `nil` without crossings.
  var sensitivity: Double? {
    (upward + downward).map(\.timeIntervalSince1970).map { time in
      // 0.01 degrees divided by the speed, which is measured over the minute around the crossing.
      0.6 / abs(samples.quantity(time + 30) - samples.quantity(time - 30))
    }.max()
  }

  /// Adds the crossing between two times, found by bisection to a fiftieth of a second, if there is one.
  private mutating func add(_ start: Double, _ end: Double, from first: Double, to last: Double) {
    guard (first < 0) != (last < 0) else { return }
    var (low, high) = (start, end)
    while high - low > 0.02 {
      let middle = (low + high) / 2
      if (samples.quantity(middle) < threshold) == (first < 0) { low = middle } else { high = middle }
    }
    // The samples reach beyond the span, and a crossing there belongs to another day.
    guard samples.span.contains(high) else { return }
    if first < 0 { upward.append(Date(timeIntervalSince1970: high)) } else { downward.append(Date(timeIntervalSince1970: high)) }
  }
}
