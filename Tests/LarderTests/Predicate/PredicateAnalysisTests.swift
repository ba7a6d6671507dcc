import Foundation
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct PredicateAnalysisTests {
  private static let table: [String: String] = [
    "true": "", "false": "never", "equal": "rating = i3", "equal mirrored": "rating = i3", "not equal": "?", "not equal mirrored": "?",
    "equal text": "name = té", "equal nan": "never", "not nan": "?", "zero": "height = r0", "float": "width = r2.5",
    "big": "big = u18446744073709551615", "big range": "big in (i9223372036854775807, …)", "tiny": "tiny in (…, i0)",
    "kind": "kind = tbeach", "label": "label ≈ tz", "label order": "?", "not": "?", "flag": "flag = true", "not flag": "flag = false",
    "flag is true": "flag = true", "maybe flag": "maybeFlag = true", "not maybe": "?", "nil": "score = null", "not nil": "?",
    "captured nil": "score = null", "wrapped": "score = i3", "wrapped text": "note = ta", "optional real": "weight = r0",
    "optional nan": "never", "twice": "twice ≈ null", "twice nil": "twice ≈ null", "less": "rating in (…, i3)",
    "less or equal": "rating in (…, i3]", "mirrored order": "rating in (i3, …)", "mirrored order or equal": "rating in [i3, …)",
    "greater mirrored": "rating in (…, i3)", "real order": "height in [r1, rinf]", "real below": "height in [r-inf, r1)",
    "nan order": "never", "text order": "name in (tab, …)", "text below": "name in (…, te]", "two paths": "?",
    "closed range": "rating in [i1, i4]", "range": "rating in [i1, i4)", "real range": "height in [r0, r2.5]",
    "text range": "name in [ta, te)", "empty range": "never", "from": "rating in [i2, …)", "up to": "height in [r-inf, r2.5)",
    "through": "rating in (…, i2]", "range of fields": "?", "set": "name of ta té", "array": "rating of i1 i3", "no array": "never",
    "optional array": "score of null i3", "array of reals": "height of r0 r1", "or": "rating of i1 i3", "or elsewhere": "?",
    "or of ranges": "?", "or nan": "height = r1", "or kind": "label ≈ tz", "and": "rating in (i1, …) & flag = true & name = tab",
    "and or": "?", "captured path": "name = tab", "captured path order": "rating in (i1, …)", "nested path": "address.city = tab",
    "optional chain": "?", "prefix": "name ≈ [tab, tac)", "accented prefix": "?", "empty prefix": "?", "array prefix": "?",
    "substring": "?", "tag": "?", "tag where": "?", "coalesce": "?", "flat map": "?", "unwrap": "?", "add": "?",
    "count": "tags.count in [i2, …)", "empty": "tags.isEmpty = true", "date": "made = r1", "date order": "made in [r-inf, r1] or nan",
    "date before": "made in [r-inf, r1)", "date range": "made in [r1, r1] or nan", "date from": "made in [r1, rinf] or nan",
    "no date": "", "before no date": "never",
  ]

  private static var names: [AnyKeyPath: String] {
    [
      \Sample.id: "id", \Sample.name: "name", \Sample.rating: "rating", \Sample.tiny: "tiny", \Sample.big: "big", \Sample.height: "height",
      \Sample.width: "width", \Sample.flag: "flag", \Sample.maybeFlag: "maybeFlag", \Sample.note: "note", \Sample.score: "score",
      \Sample.weight: "weight", \Sample.twice: "twice", \Sample.made: "made", \Sample.kind: "kind", \Sample.label: "label",
      \Sample.address.city: "address.city", \Sample.tags.count: "tags.count", \Sample.tags.isEmpty: "tags.isEmpty",
    ]
  }

  @Test func eachPredicateHasItsConstraints() throws {
    var found = 0
    for (name, predicate) in PredicateTests.written {
      guard let expected = Self.table[name] else { continue }
      found += 1
      let text = try CompiledPredicate(predicate).conjuncts.map(Self.text).joined(separator: " & ")
      #expect(text == expected, "\(name)")
    }
    #expect(found == Self.table.count)
  }

  private static func text(_ conjunct: Conjunct<Sample>) -> String {
    func name(_ path: AnyKeyPath) -> String { names[path] ?? "unknown" }
    switch conjunct.constraint {
    case .equal(let path, let value): return "\(name(path)) \(conjunct.isExact ? "=" : "≈") \(text(value))"
    case .oneOf(let path, let values): return "\(name(path)) of \(values.map(text).joined(separator: " "))"
    case .range(let path, let lower, let upper, let orNotANumber):
      let low = lower.map { ($0.isInclusive ? "[" : "(") + text($0.value) } ?? "(…"
      let high = upper.map { text($0.value) + ($0.isInclusive ? "]" : ")") } ?? "…)"
      return "\(name(path)) \(conjunct.isExact ? "in" : "≈") \(low), \(high)\(orNotANumber ? " or nan" : "")"
    case .never: return "never"
    case .always: return "always"
    case .residual: return "?"
    }
  }

  private static func text(_ value: IndexValue) -> String {
    switch value.form {
    case .null: "null"
    case .bool(let value): "\(value)"
    case .integer(let value): "i\(value)"
    case .large(let value): "u\(value)"
    case .real(let value): value == value.rounded() && value.isFinite ? "r\(Int(value))" : "r\(value)"
    case .text(let value): "t" + value
    case .identifier: "d"
    case .notANumber: "nan"
    }
  }
}
