import Foundation
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct PredicateTests {
  /// Every kind of expression that can be written, with the types that differ.
  static let written: [(String, Predicate<Sample>)] = {
    let three = 3
    let config = Sample.Address(city: "ab", zip: 1)
    let nothing: Int? = nil
    let some: Int? = 3
    let notNumber = Double.nan
    let wanted: Set<String> = ["a", "e\u{301}"]
    let few = [1, 3, 3]
    let none: [Int] = []
    let from = 2...
    let upTo = ..<2.5
    let through = ...2
    let maybes: [Int?] = [nil, 3]
    let someNil: Int?? = .some(nil)
    let minusThree = -3
    let id = Sample.ids[1]
    let date = Date(timeIntervalSinceReferenceDate: 1)
    let noDate = Date(timeIntervalSinceReferenceDate: .nan)
    let kind = Sample.Kind.beach
    let label = Sample.Label(text: "Z")
    let reals = [1, .nan, -0.0]
    var all: [(String, Predicate<Sample>)] = []
    func add(_ name: String, _ predicate: Predicate<Sample>) { all.append((name, predicate)) }
    add("true", .true)
    add("false", .false)
    add("equal", #Predicate<Sample> { $0.rating == three })
    add("equal mirrored", #Predicate<Sample> { three == $0.rating })
    add("not equal", #Predicate<Sample> { $0.rating != three })
    add("not equal mirrored", #Predicate<Sample> { "ab" != $0.name })
    add("equal text", #Predicate<Sample> { $0.name == "\u{e9}" })
    add("equal nan", #Predicate<Sample> { $0.height == notNumber })
    add("not nan", #Predicate<Sample> { $0.height != notNumber })
    add("zero", #Predicate<Sample> { $0.height == 0 })
    add("float", #Predicate<Sample> { $0.width == 2.5 })
    add("big", #Predicate<Sample> { $0.big == 18_446_744_073_709_551_615 })
    add("big range", #Predicate<Sample> { $0.big > 9_223_372_036_854_775_807 })
    add("tiny", #Predicate<Sample> { $0.tiny < 0 })
    add("identifier", #Predicate<Sample> { $0.id == id })
    add("identifier order", #Predicate<Sample> { $0.id > id })
    add("date", #Predicate<Sample> { $0.made == date })
    add("date before", #Predicate<Sample> { $0.made < date })
    add("date range", #Predicate<Sample> { (date...date).contains($0.made) })
    add("date from", #Predicate<Sample> { $0.made >= date })
    add("no date", #Predicate<Sample> { $0.made >= noDate })
    add("before no date", #Predicate<Sample> { $0.made < noDate })
    add("date order", #Predicate<Sample> { $0.made <= date })
    add("kind", #Predicate<Sample> { $0.kind == kind })
    add("label", #Predicate<Sample> { $0.label == label })
    add("label order", #Predicate<Sample> { $0.label < label })
    add("not", #Predicate<Sample> { !($0.rating > 3) })
    add("flag", #Predicate<Sample> { $0.flag })
    add("not flag", #Predicate<Sample> { !$0.flag })
    add("flag is true", #Predicate<Sample> { $0.flag == true })
    add("maybe flag", #Predicate<Sample> { $0.maybeFlag == true })
    add("not maybe", #Predicate<Sample> { !($0.maybeFlag == true) })
    add("nil", #Predicate<Sample> { $0.score == nil })
    add("not nil", #Predicate<Sample> { $0.note != nil })
    add("captured nil", #Predicate<Sample> { $0.score == nothing })
    add("wrapped", #Predicate<Sample> { $0.score == some })
    add("wrapped text", #Predicate<Sample> { $0.note == "a" })
    add("optional real", #Predicate<Sample> { $0.weight == 0 })
    add("optional nan", #Predicate<Sample> { $0.weight == notNumber })
    add("twice", #Predicate<Sample> { $0.twice == someNil })
    add("twice nil", #Predicate<Sample> { $0.twice == nil })
    add("less", #Predicate<Sample> { $0.rating < 3 })
    add("less or equal", #Predicate<Sample> { $0.rating <= 3 })
    add("mirrored order", #Predicate<Sample> { 3 < $0.rating })
    add("mirrored order or equal", #Predicate<Sample> { 3 <= $0.rating })
    add("greater mirrored", #Predicate<Sample> { 3 > $0.rating })
    add("real order", #Predicate<Sample> { $0.height >= 1 })
    add("real below", #Predicate<Sample> { $0.height < 1 })
    add("nan order", #Predicate<Sample> { $0.height < notNumber })
    add("text order", #Predicate<Sample> { $0.name > "ab" })
    add("text below", #Predicate<Sample> { $0.name <= "e" })
    add("two paths", #Predicate<Sample> { $0.rating < $0.count })
    add("closed range", #Predicate<Sample> { (1...4).contains($0.rating) })
    add("range", #Predicate<Sample> { (1..<4).contains($0.rating) })
    add("real range", #Predicate<Sample> { (0.0...2.5).contains($0.height) })
    add("text range", #Predicate<Sample> { ("a"..<"e").contains($0.name) })
    add("empty range", #Predicate<Sample> { (3..<3).contains($0.rating) })
    add("from", #Predicate<Sample> { from.contains($0.rating) })
    add("up to", #Predicate<Sample> { upTo.contains($0.height) })
    add("through", #Predicate<Sample> { through.contains($0.rating) })
    add("range of fields", #Predicate<Sample> { (minusThree...$0.count).contains(0) })
    add("half range of fields", #Predicate<Sample> { ($0.count..<2).contains(1) })
    add("set", #Predicate<Sample> { wanted.contains($0.name) })
    add("array", #Predicate<Sample> { few.contains($0.rating) })
    add("no array", #Predicate<Sample> { none.contains($0.rating) })
    add("optional array", #Predicate<Sample> { maybes.contains($0.score) })
    add("array of reals", #Predicate<Sample> { reals.contains($0.height) })
    add("or", #Predicate<Sample> { $0.rating == 3 || $0.rating == 1 || few.contains($0.rating) })
    add("or elsewhere", #Predicate<Sample> { $0.rating == 3 || $0.count == 1 })
    add("or of ranges", #Predicate<Sample> { $0.rating < 3 || $0.rating == 5 })
    add("or nan", #Predicate<Sample> { $0.height == notNumber || $0.height == 1 })
    add("or kind", #Predicate<Sample> { $0.label == label || $0.label == label })
    add("and", #Predicate<Sample> { $0.rating > 1 && $0.flag && $0.name == "ab" })
    add("and or", #Predicate<Sample> { $0.flag || ($0.rating > 1 && $0.count < 2) })
    add("captured path", #Predicate<Sample> { $0.name == config.city })
    add("captured path order", #Predicate<Sample> { $0.rating > config.zip })
    add("nested path", #Predicate<Sample> { $0.address.city == "ab" })
    add("optional chain", #Predicate<Sample> { $0.home?.city == "ab" })
    add("prefix", #Predicate<Sample> { $0.name.starts(with: "ab") })
    add("accented prefix", #Predicate<Sample> { $0.name.starts(with: "e\u{301}") })
    add("empty prefix", #Predicate<Sample> { $0.name.starts(with: "") })
    add("array prefix", #Predicate<Sample> { $0.numbers.starts(with: few) })
    add("substring", #Predicate<Sample> { $0.name.contains("b") })
    add("sub-collection", #Predicate<Sample> { $0.numbers.contains(few) })
    add("tag", #Predicate<Sample> { $0.tags.contains("a") })
    add("tag where", #Predicate<Sample> { $0.tags.contains { $0 > "a" } })
    add("outer variable", #Predicate<Sample> { sample in sample.tags.contains { $0 == sample.name } })
    add(
      "two deep",
      #Predicate<Sample> { sample in sample.numbers.contains { n in sample.numbers.contains { $0 == n && n < sample.rating } } })
    add("all", #Predicate<Sample> { $0.numbers.allSatisfy { $0 > -2 } })
    add("filter", #Predicate<Sample> { $0.numbers.filter { $0 > 0 }.count == 2 })
    add("max", #Predicate<Sample> { $0.numbers.max() == 3 })
    add("min", #Predicate<Sample> { $0.numbers.min() == nil })
    add("count", #Predicate<Sample> { $0.tags.count >= 2 })
    add("first", #Predicate<Sample> { $0.numbers.first == 1 })
    add("empty", #Predicate<Sample> { $0.tags.isEmpty })
    add("index", #Predicate<Sample> { $0.numbers.count > 1 && $0.numbers[1] > 0 })
    add("index out of range", #Predicate<Sample> { $0.numbers[1] > 0 })
    add("slice", #Predicate<Sample> { $0.numbers[0..<1].contains(1) })
    add("dictionary", #Predicate<Sample> { $0.counts["a"] == 1 })
    add("no key", #Predicate<Sample> { $0.counts["b"] == nil })
    add("default", #Predicate<Sample> { $0.counts["b", default: $0.count] == 1 })
    add("add", #Predicate<Sample> { $0.count + 1 > 3 })
    add("subtract", #Predicate<Sample> { 1 - $0.count > 3 })
    add("multiply", #Predicate<Sample> { $0.count * 2 > 3 })
    add("real arithmetic", #Predicate<Sample> { $0.height * 2.0 + 1.0 - $0.height > 3.0 })
    add("real division", #Predicate<Sample> { $0.height / 0 > 3 })
    add("divide", #Predicate<Sample> { $0.count / 2 == 1 })
    add("remainder", #Predicate<Sample> { $0.count % 2 == -1 })
    add("minus", #Predicate<Sample> { -$0.count > 0 })
    add("real minus", #Predicate<Sample> { -$0.height > 0 })
    add("coalesce", #Predicate<Sample> { ($0.score ?? 3) > 2 })
    // swift-format-ignore: NeverForceUnwrap
    add("unwrap", #Predicate<Sample> { $0.score! > 2 })
    add("flat map", #Predicate<Sample> { $0.score.flatMap { $0 > 2 } ?? true })
    add("conditional", #Predicate<Sample> { $0.flag ? $0.rating > 1 : $0.count > 1 })
    add("cast", #Predicate<Sample> { ($0.rating as Any) as? Int == 3 })
    add("is", #Predicate<Sample> { ($0.score as Any) is Int })
    return all
  }()

  @Test(arguments: Seeds.list(1, for: "PredicateTests"))
  func aCompiledPredicateSaysWhatFoundationSays(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    let samples = (0..<200).map { _ in Sample.random(&generator) }
    for (name, predicate) in Self.written { try agrees(predicate, on: samples, "\(name), LARDER_SEED=\(seed)") }
  }
}
