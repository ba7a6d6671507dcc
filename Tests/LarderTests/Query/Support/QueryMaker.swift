import Foundation

@testable import Larder

/// A random query, and what it means, said in plain Swift.
struct QueryMaker: Sendable {
  private(set) var query = Query<Thing>()
  private(set) var text = ""
  private var conditions: [@Sendable (Thing) -> Bool] = []
  private var orders: [@Sendable (Thing, Thing) -> Int] = []
  private var near: (latitude: Double, longitude: Double)?
  private var limit: Int?
  private var offset = 0

  static let indexes: [RepositoryIndex<Thing>] = [
    .ordered(\.country), .ordered(\.rating), .ordered(\.country, \.rating), .ordered(\.kind, \.day), .ordered(\.height),
    .ordered(\.score, \.rating), .ordered(.ascending(\.country), .descending(\.rating)), .ordered(.descending(\.day)),
    .ordered(\.isOpen, \.kind, \.rating), .ordered(\.rating, \.day), .ordered(.descending(\.kind), \.rating),
    .ordered(\.isSure, .descending(\.rating)), .unique(\.id), .geo(\.latitude, \.longitude),
    .fullText(\.notes),
  ]

  /// How many seeds a test takes: as many as `LARDER_QUERIES` says, for a thorough run by hand.
  static func count(_ usual: Int) -> Int { ProcessInfo.processInfo.environment["LARDER_QUERIES"].flatMap { Int($0) } ?? usual }

  static func indexes(using random: inout SeededGenerator) -> [RepositoryIndex<Thing>] {
    indexes.filter { _ in random.chance(45) }
  }

  init(using random: inout SeededGenerator, indexes: [RepositoryIndex<Thing>]) {
    for _ in 0..<random.int(0..<4) { addPredicate(using: &random) }
    if random.chance(15) { add("filter", query.filter { $0.tags.contains("tide") }) { $0.tags.contains("tide") } }
    if indexes.contains(where: { if case .geo = $0.kind { true } else { false } }) { addPlace(using: &random) }
    for _ in 0..<random.int(0..<3) { addOrder(using: &random) }
    if indexes.contains(where: { if case .fullText = $0.kind { true } else { false } }) { addWords(using: &random) }
    if random.chance(50) {
      let count = random.int(0..<12)
      (limit, query, text) = (count, query.limit(count), text + " limit \(count)")
    }
    if random.chance(20) {
      let count = random.int(0..<5)
      (offset, query, text) = (count, query.offset(count), text + " offset \(count)")
    }
  }

  private mutating func add(_ name: String, _ query: Query<Thing>, _ holds: @escaping @Sendable (Thing) -> Bool) {
    self.query = query
    text += " \(name)"
    conditions.append(holds)
  }

  private mutating func addPredicate(using random: inout SeededGenerator) {
    let other = Thing.random(0, using: &random)
    let (country, kind, rating, height, score, day) = (other.country, other.kind, other.rating, other.height, other.score, other.day)
    switch random.int(0..<18) {
    case 0: add("country = \(country)", query.where(#Predicate { $0.country == country })) { $0.country == country }
    case 1: add("rating >= \(rating)", query.where(#Predicate { $0.rating >= rating })) { $0.rating >= rating }
    case 2:
      add("country = and rating <", query.where(#Predicate { $0.country == country && $0.rating < rating })) {
        $0.country == country && $0.rating < rating
      }
    case 3: add("kind = \(kind)", query.where(#Predicate { $0.kind == kind })) { $0.kind == kind }
    case 4: add("height <= \(height)", query.where(#Predicate { $0.height <= height })) { $0.height <= height }
    case 5: add("score = \(String(describing: score))", query.where(#Predicate { $0.score == score })) { $0.score == score }
    case 6: add("score nil", query.where(#Predicate { $0.score == nil })) { $0.score == nil }
    case 7:
      let days = [day, day.addingTimeInterval(86_400), day.addingTimeInterval(86_400 * 3)]
      add("day in", query.where(#Predicate { days.contains($0.day) })) { days.contains($0.day) }
    case 8:
      let countries = [country, "NO"]
      add("country in", query.where(#Predicate { countries.contains($0.country) && $0.isOpen })) {
        countries.contains($0.country) && $0.isOpen
      }
    case 9: add("country >", query.where(#Predicate { $0.country > country })) { $0.country > country }
    case 10:
      add("or", query.where(#Predicate { $0.rating == rating || $0.height == height })) { $0.rating == rating || $0.height == height }
    case 11: add("not", query.where(#Predicate { !($0.rating == rating) && !$0.isOpen })) { $0.rating != rating && !$0.isOpen }
    case 12:
      let range = min(rating, 3)...max(rating, 3)
      add("rating in \(range)", query.where(#Predicate { range.contains($0.rating) })) { range.contains($0.rating) }
    case 14: add("kind .equal \(kind)", query.where(\.kind, .equal, kind)) { $0.kind == kind }
    case 15: add("score .greater", query.where(\.score, .greater, score ?? 0)) { $0.score.map { $0 > score ?? 0 } ?? false }
    case 16:
      add("day .lessOrEqual", query.where(\.day, .lessOrEqual, day).where(\.kind, .notEqual, kind)) { $0.day <= day && $0.kind != kind }
    case 17: add("country in", query.where(\.country, in: [country, "NO"])) { $0.country == country || $0.country == "NO" }
    default:
      add("day between", query.where(#Predicate { $0.day >= day && $0.kind == kind && day > $0.day })) {
        $0.day >= day && $0.kind == kind && day > $0.day
      }
    }
  }

  private mutating func addPlace(using random: inout SeededGenerator) {
    for _ in 0..<random.timesAsked(30) {
      let other = Thing.random(0, using: &random)
      let (latitude, longitude) = (other.latitude, other.longitude)
      let radius = random.chance(50) ? Double(random.int(0..<20_000)) : nil
      near = (latitude, longitude)
      let nearby = query.near(latitude: latitude, longitude: longitude, within: radius.map { .kilometers($0) })
      let greatest = radius.map { $0 * 1_000 } ?? .infinity
      add("near \(latitude) \(longitude) within \(greatest)", nearby) { Self.distance(latitude, longitude, $0) <= greatest }
    }
    for _ in 0..<random.timesAsked(20) {
      let other = Thing.random(0, using: &random)
      let box = BoundingBox(
        south: min(other.latitude, 10), west: other.longitude, north: max(other.latitude, 10), east: Double(random.int(-180..<180)))
      add("within \(box)", query.within(box)) { box.contains(latitude: $0.latitude, longitude: $0.longitude) }
    }
  }

  /// Words, with an order that does not rest on ranks, which `TextIndexTests` compares.
  private mutating func addWords(using random: inout SeededGenerator) {
    let count = random.timesAsked(25)
    if count == 0 { return }
    for _ in 0..<count {
      let words = [["dawn"], ["light"], ["cafe", "pi"], ["munster"], ["rock", "storm"], ["nothing"]][random.int(0..<6)]
      let isFinished = random.chance(30)
      add("matching \(words)", query.matching(words.joined(separator: " ") + (isFinished ? " " : ""))) { thing in
        let found = thing.notes.split(separator: " ").map {
          $0.lowercased().replacingOccurrences(of: "é", with: "e").replacingOccurrences(of: "ü", with: "u")
        }
        let last = words[words.count - 1]
        return words.dropLast().allSatisfy(found.contains) && found.contains { isFinished ? $0 == last : $0.hasPrefix(last) }
      }
    }
    if orders.isEmpty && near == nil { addOrder(using: &random) }
  }

  private static func distance(_ latitude: Double, _ longitude: Double, _ thing: Thing) -> Double {
    guard let here = GeoCoordinate(latitude: latitude, longitude: longitude),
      let there = GeoCoordinate(latitude: thing.latitude, longitude: thing.longitude)
    else { return .infinity }
    return GreatCircle.distance(here, there)
  }

  private mutating func addOrder(using random: inout SeededGenerator) {
    let isReversed = random.chance(50)
    let order: SortOrder = isReversed ? .reverse : .forward
    func compare<Value: Comparable & SendableMetatype>(_ value: @escaping @Sendable (Thing) -> Value) -> @Sendable (Thing, Thing) -> Int {
      { left, right in
        let (left, right) = isReversed ? (value(right), value(left)) : (value(left), value(right))
        return left < right ? -1 : right < left ? 1 : 0
      }
    }
    text += " sorted \(order)"
    switch random.int(0..<9) {
    case 6: (query, orders) = (query.sorted(by: \.isOpen, order), orders + [compare { $0.isOpen ? 1 : 0 }])
    case 7: (query, orders) = (query.sorted(by: \.kind, order), orders + [compare { $0.kind.rawValue }])
    case 8: (query, orders) = (query.sorted(by: \.isSure, order), orders + [compare { $0.isSure.map { $0 ? 2 : 1 } ?? 0 }])
    case 0: (query, orders) = (query.sorted(by: \.country, order), orders + [compare(\.country)])
    case 1: (query, orders) = (query.sorted(by: \.rating, order), orders + [compare(\.rating)])
    case 2: (query, orders) = (query.sorted(by: \.day, order), orders + [compare(\.day)])
    case 3: (query, orders) = (query.sorted(by: \.height, order), orders + [compare(\.height)])
    case 4: (query, orders) = (query.sorted(by: \.score, order), orders + [compare { $0.score ?? Int.min }])
    default: (query, orders) = (query.sorted(by: \.id, order), orders + [compare(\.id)])
    }
  }

  /// Returns the results of the query by looking at everything.
  func answer(_ things: some Sequence<Thing>, ignoringLimits: Bool = false) -> [Thing] {
    let matching = things.filter { thing in conditions.allSatisfy { $0(thing) } }
    let sorted = matching.sorted { left, right in
      for order in orders {
        let result = order(left, right)
        if result != 0 { return result < 0 }
      }
      if orders.isEmpty, let near {
        let distances = (Self.distance(near.latitude, near.longitude, left), Self.distance(near.latitude, near.longitude, right))
        if distances.0 != distances.1 { return distances.0 < distances.1 }
      }
      return left.id < right.id
    }
    if ignoringLimits { return sorted }
    return Array(sorted.dropFirst(offset).prefix(limit ?? .max))
  }
}

extension SeededGenerator {
  /// How often a condition is asked for: not at all, or once so many times in a hundred, and now and then twice.
  mutating func timesAsked(_ percent: Int) -> Int { chance(percent) ? (chance(30) ? 2 : 1) : 0 }
}
