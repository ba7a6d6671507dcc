/// The measurements of one contender: a value a round, each of them of one operation on average.
package struct Series: Codable, Equatable, Sendable {
  package enum Kind: String, Codable, Sendable {
    case larder, peer
    /// The least that the machine can do the work in, without a store.
    case limit
  }

  package enum Unit: String, Codable, Sendable { case microseconds, bytes, ratio }

  package let name: String
  package let kind: Kind
  /// The number of records or changes that it was measured over, where that is what is compared.
  package let size: Int?
  package let unit: Unit
  package let rounds: [Double]

  package init(_ name: String, _ kind: Kind, size: Int? = nil, unit: Unit = .microseconds, _ rounds: [Double]) {
    (self.name, self.kind, self.size, self.unit, self.rounds) = (name, kind, size, unit, rounds)
  }

  /// The part of the name behind the first comma: the work, where one contender does several.
  package var work: String? {
    name.firstIndex(of: ",").map { name[name.index(after: $0)...].trimmingPrefix(" ") }.map(String.init)
  }

  /// The part of the name before the first comma: the store.
  package var engine: String { String(name.prefix { $0 != "," }) }

  package var median: Double { Statistics(rounds)?.median ?? .nan }

  /// The operations a second, where the series measures time.
  package var rate: Double? { unit == .microseconds && median > 0 ? 1e6 / median : nil }
}
