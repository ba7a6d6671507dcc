import Foundation

@testable import Larder

/// A query that an input describes, and the same conditions as a plain function.
struct QueryMaker {
  var query = Query<Place>()
  var conditions: [(Place) -> Bool] = []
  /// The columns that it is sorted by, as plain comparisons: negative where the left one comes first.
  var order: [(Place, Place) -> Int] = []

  init(_ input: inout FuzzInput) {
    for _ in 0..<input.int(below: 4) { addCondition(&input) }
    for _ in 0..<input.int(below: 3) { addOrder(&input) }
    if input.bool() { query = query.limit(input.int(below: 70)) }
    if input.bool() { query = query.offset(input.int(below: 70)) }
  }

  private mutating func addCondition(_ input: inout FuzzInput) {
    switch input.int(below: 8) {
    case 0:
      let country = input.bool() ? Place.countries[input.int(below: Place.countries.count)] : input.text(upTo: 8)
      compare(\.country, country, &input)
    case 1: compare(\.rating, input.int(below: 8) - 1, &input)
    case 2: compare(\.height, input.bool() ? Place.heights[input.int(below: Place.heights.count)] : double(&input), &input)
    case 3:
      let score = input.int(below: 6) - 3
      query = query.where(\.score, .greaterOrEqual, score)
      conditions.append { $0.score.map { $0 >= score } ?? false }
    case 4:
      let (rating, country) = (input.int(below: 6), Place.countries[input.int(below: Place.countries.count)])
      query = query.where(#Predicate { $0.rating >= rating || $0.country == country })
      conditions.append { $0.rating >= rating || $0.country == country }
    case 5:
      let (south, west) = (Double(input.int(below: 190)) - 95, Double(input.int(below: 400)) - 200)
      let box = BoundingBox(
        south: south, west: west, north: south + Double(input.int(below: 100)), east: west + Double(input.int(below: 400)))
      query = query.within(box)
      conditions.append { box.contains(latitude: $0.latitude, longitude: $0.longitude) }
    case 6: addNear(&input)
    default:
      let text = input.bool() ? Place.words[input.int(below: Place.words.count)] : input.text(upTo: 20)
      let words = TextQuery(text)
      query = query.matching(text)
      conditions.append { words.matches([$0.notes]) }
    }
  }

  private mutating func addNear(_ input: inout FuzzInput) {
    let place = (latitude: Double(input.int(below: 181)) - 90, longitude: Double(input.int(below: 361)) - 180)
    let radius = input.bool() ? Distance.kilometers(Double(input.int(below: 20_000))) : nil
    query = query.near(latitude: place.latitude, longitude: place.longitude, within: radius)
    conditions.append { item in
      guard let distance = Distance.between(place, (item.latitude, item.longitude)) else { return false }
      return radius.map { distance <= $0 } ?? true
    }
  }

  private mutating func addOrder(_ input: inout FuzzInput) {
    let isReversed = input.bool()
    let direction: SortOrder = isReversed ? .reverse : .forward
    switch input.int(below: 4) {
    case 0:
      query = query.sorted(by: \.country, direction)
      order.append { Self.compare($0.country, $1.country, isReversed) }
    case 1:
      query = query.sorted(by: \.rating, direction)
      order.append { Self.compare($0.rating, $1.rating, isReversed) }
    case 2:
      query = query.sorted(by: \.height, direction)
      order.append { Self.compare($0.height, $1.height, isReversed) }
    default:
      query = query.sorted(by: \.latitude, direction)
      order.append { Self.compare($0.latitude, $1.latitude, isReversed) }
    }
  }

  private static func compare<Value: Comparable>(_ left: Value, _ right: Value, _ isReversed: Bool) -> Int {
    let sign = left < right ? -1 : left > right ? 1 : 0
    return isReversed ? -sign : sign
  }

  private mutating func compare<Value: Comparable & IndexableValue & Sendable>(
    _ keyPath: any KeyPath<Place, Value> & Sendable, _ value: Value, _ input: inout FuzzInput
  ) {
    let choices: [QueryComparison<Value>] = [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]
    let comparison = choices[input.int(below: choices.count)]
    query = query.where(keyPath, comparison, value)
    conditions.append { comparison.holds($0[keyPath: keyPath], value) }
  }

  private func double(_ input: inout FuzzInput) -> Double { Double(bitPattern: input.number(UInt64.self)) }

  /// Whether a place meets all conditions.
  func accepts(_ place: Place) -> Bool { conditions.allSatisfy { $0(place) } }
}
