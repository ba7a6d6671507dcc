/// A figure to reach, checked against what was measured.
package struct Goal: Codable, Equatable, Sendable {
  package enum Rule: Codable, Equatable, Sendable {
    /// At most so many times what another contender takes.
    case atMostTimes(Double, of: String)
    /// So many times as fast as another contender, or faster.
    case timesFaster(Double, than: String)
    /// At most so much, in the unit of the series.
    case atMost(Double)
    /// At most so much more than another contender.
    case adds(Double, over: String)
    /// At most so many times as much at the largest size as at the smallest.
    case grows(Double)
    /// At most so many times as much as another contender grows, for work that more memory makes dearer for everybody.
    case growsBeside(Double, of: String)
  }

  package let series: String
  package let rule: Rule

  package init(_ series: String, _ rule: Rule) { (self.series, self.rule) = (series, rule) }

  /// Judges what was measured; `nil` where a contender that it needs was not.
  package func verdict(on all: [Series]) -> Verdict? {
    guard let first = all.first(where: { $0.name == series }) else { return nil }
    switch rule {
    case .atMostTimes(let limit, let other):
      guard let ratio = Self.ratio(first, all, other) else { return nil }
      return Verdict(
        series, "\(Figures.digits(ratio.median)) times \(other)", "at most \(Figures.digits(limit)) times", ratio.median <= limit, ratio)
    case .timesFaster(let factor, let other):
      guard let peer = all.first(where: { $0.name == other }), let ratio = Statistics(peer.rounds, over: first.rounds) else { return nil }
      let found =
        ratio.median >= 1 ? "\(Figures.digits(ratio.median)) times as fast as" : "\(Figures.digits(1 / ratio.median)) times slower than"
      return Verdict(series, "\(found) \(other)", "\(Figures.digits(factor)) times as fast", ratio.median >= factor, ratio)
    case .atMost(let limit):
      let median = first.median
      return Verdict(series, Figures.text(median, first.unit), "at most \(Figures.text(limit, first.unit))", median <= limit, nil)
    case .adds(let limit, let other):
      guard let base = all.first(where: { $0.name == other }), let added = Statistics(zip(first.rounds, base.rounds).map { $0 - $1 })
      else { return nil }
      return Verdict(
        series, "\(Figures.text(added.median, first.unit)) more than \(other)", "at most \(Figures.text(limit, first.unit)) more",
        added.median <= limit, nil)
    case .grows(let limit):
      guard let growth = Growth(series, in: all) else { return nil }
      let found = "\(growth.size) \(Figures.digits(growth.ratio.median)) times as much as \(growth.start)"
      return Verdict(series, found, "at most \(Figures.digits(limit)) times", growth.ratio.median <= limit, growth.ratio)
    case .growsBeside(let limit, let other):
      guard let growth = Growth(series, in: all), let beside = Growth(other, in: all) else { return nil }
      let times = growth.ratio.median / beside.ratio.median
      let found =
        "\(growth.size) \(Figures.digits(growth.ratio.median)) times as much as \(growth.start),"
        + " where \(other) grows \(Figures.digits(beside.ratio.median)) times"
      return Verdict(series, found, "at most \(Figures.digits(limit)) times as much growth", times <= limit, growth.ratio)
    }
  }

  private static func ratio(_ first: Series, _ all: [Series], _ other: String) -> Statistics? {
    all.first { $0.name == other }.flatMap { Statistics(first.rounds, over: $0.rounds) }
  }
}

/// The ratio of a contender's largest size to its smallest.
private struct Growth {
  let ratio: Statistics
  let size: String
  let start: String

  /// Takes the growth of a contender; `nil` where it was not measured at two sizes.
  init?(_ name: String, in all: [Series]) {
    let sizes = all.filter { $0.name == name && $0.size != nil }.sorted { ($0.size ?? 0) < ($1.size ?? 0) }
    guard let small = sizes.first, let large = sizes.last, small.size != large.size,
      let ratio = Statistics(large.rounds, over: small.rounds)
    else { return nil }
    self.ratio = ratio
    (size, start) = ("at \(Figures.count(large.size ?? 0))", "at \(Figures.count(small.size ?? 0))")
  }
}

/// The finding where there is a goal, in words.
package struct Verdict: Equatable, Sendable {
  package let series: String
  package let found: String
  package let asked: String
  package let isReached: Bool
  /// The ratio's spread over the rounds, where it is one.
  package let ratio: Statistics?

  init(_ series: String, _ found: String, _ asked: String, _ isReached: Bool, _ ratio: Statistics?) {
    (self.series, self.found, self.asked, self.isReached, self.ratio) = (series, found, asked, isReached, ratio)
  }

  package var text: String {
    let spread = ratio.map { " (quartiles \(Figures.digits($0.lowerQuartile)) to \(Figures.digits($0.upperQuartile)))" } ?? ""
    return "\(series): \(found)\(spread); goal: \(asked): \(isReached ? "reached" : "missed")"
  }
}
