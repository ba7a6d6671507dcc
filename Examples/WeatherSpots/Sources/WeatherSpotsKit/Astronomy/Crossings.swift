import Foundation

/// The moments at which a quantity passes zero.
struct Crossings {
  /// Seconds since 1970 at which it begins to be at least zero, in order.
  private(set) var upward: [Double] = []
  /// Seconds since 1970 at which it begins to be below zero, in order.
  private(set) var downward: [Double] = []

  /// Looks through a span, without its end.
  ///
  /// The quantity is sampled every ten minutes, from one step before the span to one step after it. Between two samples on different
  /// sides lies one crossing; where the quantity turns back close to zero between samples on one side, the turning point is sought, and
  /// if it is on the other side there are two.
  ///
  /// - Parameters:
  ///   - closeness: How far from zero a turning point may be sampled and still be looked at. 0.35 degrees of altitude are more than a
  ///     body can make in half a step around its turning point.
  init(in span: Range<Double>, closeness: Double = 0.35, of quantity: (Double) -> Double) {
    let step = 600.0
    let steps = Int(((span.upperBound - span.lowerBound) / step).rounded(.up))
    let times = (-1...steps + 1).map { span.lowerBound + Double($0) * step }
    let values = times.map(quantity)
    for index in 1..<times.count {
      add(times[index - 1], values[index - 1], times[index], values[index], span, quantity)
      guard index + 1 < times.count, abs(values[index]) < closeness else { continue }
      let around = values[index - 1...index + 1]
      guard around.allSatisfy({ $0 < 0 }) || !around.contains(where: { $0 < 0 }) else { continue }
      let sign: Double = values[index] < 0 ? 1 : -1
      guard sign * values[index] >= sign * values[index - 1], sign * values[index] > sign * values[index + 1] else { continue }
      let turning = Self.maximum(from: times[index - 1], to: times[index + 1]) { sign * quantity($0) }
      let extreme = quantity(turning)
      add(times[index - 1], values[index - 1], turning, extreme, span, quantity)
      add(turning, extreme, times[index + 1], values[index + 1], span, quantity)
    }
    upward.sort()
    downward.sort()
  }

  private mutating func add(
    _ start: Double, _ first: Double, _ end: Double, _ last: Double, _ span: Range<Double>, _ quantity: (Double) -> Double
  ) {
    guard (first < 0) != (last < 0) else { return }
    var (low, high) = (start, end)
    while high - low > 0.02 {
      let middle = (low + high) / 2
      if (quantity(middle) < 0) == (first < 0) { low = middle } else { high = middle }
    }
    guard span.contains(high) else { return }
    if first < 0 { upward.append(high) } else { downward.append(high) }
  }

  /// Where a quantity with one peak is highest, to a tenth of a second.
  static func maximum(from start: Double, to end: Double, of quantity: (Double) -> Double) -> Double {
    var (low, high) = (start, end)
    while high - low > 0.1 {
      let third = (high - low) / 3
      if quantity(low + third) < quantity(high - third) { low += third } else { high -= third }
    }
    return (low + high) / 2
  }
}
