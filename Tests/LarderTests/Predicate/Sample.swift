import Foundation
import Testing

@testable import Larder

/// A record with a field of every type that predicates are asked about, and values that lie at the edges of those types.
struct Sample: Codable, Hashable, Sendable {
  enum Kind: String, Codable, IndexableValue, CaseIterable { case pier, beach, summit }

  struct Address: Codable, Hashable, Sendable {
    var city: String
    var zip: Int
  }

  /// Equal only to itself exactly, but indexed without regard to case; ordered against its index.
  struct Label: Codable, Hashable, Comparable, IndexableValue {
    var text: String
    var indexValue: IndexValue { IndexValue(text.lowercased()) }
    static func < (left: Label, right: Label) -> Bool { left.text > right.text }
  }

  var id: UUID
  var name: String
  var rating: Int
  var count: Int
  var tiny: Int8
  var big: UInt64
  var height: Double
  var width: Float
  var flag: Bool
  var maybeFlag: Bool?
  var note: String?
  var score: Int?
  var weight: Double?
  var twice: Int??
  var made: Date
  var kind: Kind
  var label: Label
  var address: Address
  var home: Address?
  var tags: [String]
  var numbers: [Int]
  var counts: [String: Int]

  static let names = ["", "a", "ab", "abc", "ab\u{301}", "\u{e9}", "e\u{301}", "e", "z", "Z", "\u{212b}", "\u{e5}", "😀", "ab\u{0}"]
  static let ids = (0..<4).map { UUID(uuid: (0x80, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, $0)) } + [UUID()]
  static let integers = [Int.min, Int.max, -1, 0, 1, 2, 3, 4, 5]
  static let reals = [0, -0.0, 1, 2.5, -1, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, .leastNonzeroMagnitude]

  static func random(_ generator: inout SeededGenerator) -> Sample {
    func pick<C: Collection>(_ choices: C) -> C.Element {
      choices[choices.index(choices.startIndex, offsetBy: generator.int(0..<choices.count))]
    }
    let address = Address(city: pick(names), zip: pick(-2...2))
    return Sample(
      id: pick(ids), name: pick(names), rating: pick(integers), count: pick(-3...5), tiny: pick([.min, .max, 0, 1, -1]),
      big: pick([0, 1, UInt64(Int64.max), UInt64(Int64.max) + 1, .max]), height: pick(reals), width: Float(pick(reals)),
      flag: pick([true, false]), maybeFlag: pick([true, false, nil]), note: pick(names + [nil]), score: pick(integers + [nil]),
      weight: pick(reals + [nil]), twice: pick([Int??.none, .some(nil), .some(3)]),
      made: Date(timeIntervalSinceReferenceDate: pick(reals)), kind: pick(Kind.allCases), label: Label(text: pick(names)),
      address: address, home: pick([address, nil]), tags: (0..<pick(0...3)).map { _ in pick(names) },
      numbers: (0..<pick(0...3)).map { _ in pick(-3...3) }, counts: ["a": pick(-2...2)])
  }
}

/// Compiles a predicate and sees that it says what Foundation says, and that its conjuncts do, for some records.
func agrees(
  _ predicate: Predicate<Sample>, on samples: [Sample], _ name: Comment, sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let compiled = try CompiledPredicate(predicate)
  for sample in samples {
    let expected: Bool?
    do { expected = try predicate.evaluate(sample) } catch { expected = nil }
    #expect(outcome(compiled.evaluate, sample) == expected, name, sourceLocation: sourceLocation)
    var together: Bool? = true
    for conjunct in compiled.conjuncts where together == true { together = outcome(conjunct.evaluate, sample) }
    #expect(together == expected, name, sourceLocation: sourceLocation)
    for conjunct in compiled.conjuncts {
      guard let holds = conjunct.constraint.holds(sample) else { continue }
      let says = outcome(conjunct.evaluate, sample)
      let fits = conjunct.isExact ? says == holds : says == false || (says == true && holds)
      #expect(fits, "\(name), \(conjunct.constraint)", sourceLocation: sourceLocation)
    }
  }
}

/// Returns what a closure says, or nothing if it throws `.unsupported`.
private func outcome(_ evaluate: (Sample) throws(RepositoryError) -> Bool, _ sample: Sample) -> Bool? {
  do {
    return try evaluate(sample)
  } catch {
    #expect(error.code == .unsupported)
    return nil
  }
}

extension Constraint {
  /// Whether a record meets the constraint, as an index sees it; nothing for a residual.
  func holds(_ sample: Sample) -> Bool? {
    func value(_ path: AnyKeyPath) -> IndexValue {
      let value = sample[keyPath: path] as Any
      var inner = value
      while Mirror(reflecting: inner).displayStyle == .optional {
        guard let wrapped = Mirror(reflecting: inner).children.first else { return .null }
        inner = wrapped.value
      }
      return (inner as? any IndexableValue)?.indexValue ?? .null
    }
    switch self {
    case .equal(let path, let expected): return value(path) == expected
    case .oneOf(let path, let expected): return expected.contains(value(path))
    case .range(let path, let lower, let upper, let orNotANumber):
      let value = value(path)
      if value == .notANumber { return orNotANumber }
      if let lower, lower.isInclusive ? value < lower.value : value <= lower.value { return false }
      if let upper, upper.isInclusive ? value > upper.value : value >= upper.value { return false }
      return true
    case .never: return false
    case .always: return true
    case .residual: return nil
    }
  }
}
