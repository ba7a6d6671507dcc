internal import Foundation
internal import Larder
internal import LarderTesting
internal import TestSupport

/// A query, and what it means in plain Swift.
struct Question {
  let query: Query<Place>
  let text: String
  /// Whether the order of the answer is said; of the others only the records count.
  let isOrdered: Bool
  private let answer: (Place) -> Bool
  private let comesBefore: (Place, Place) -> Bool
  private let window: Range<Int>

  init(using random: inout SeededGenerator) {
    let number = random.int(0..<100)
    let word = Place.words[random.int(0..<Place.words.count)]
    let name = "\(word) \(Place.words[random.int(0..<Place.words.count)])"
    var comesBefore: (Place, Place) -> Bool = { $0.id < $1.id }
    var (isOrdered, window) = (true, 0..<Int.max)
    switch random.int(0..<7) {
    case 0:
      let offset = random.int(0..<4)
      window = offset..<offset + random.int(1..<9)
      query = Query<Place>().where(\.value, .greaterOrEqual, number).sorted(by: \.value).offset(offset).limit(window.count)
      text = "value >= \(number) by value, \(window)"
      answer = { $0.value >= number }
      comesBefore = { ($0.value, $0.id) < ($1.value, $1.id) }
    case 1:
      query = Query<Place>().where(#Predicate { $0.name == name && $0.value < number })
      text = "name == \(name) && value < \(number)"
      answer = { $0.name == name && $0.value < number }
    case 2:
      query = Query<Place>().where(\.value, .less, number).sorted(by: \.rank, .reverse)
      text = "value < \(number) by rank, reversed"
      answer = { $0.value < number }
      comesBefore = { (-($0.rank ?? -1), $0.id) < (-($1.rank ?? -1), $1.id) }
    case 3:
      query = Query<Place>().filter { $0.rank == nil && $0.value.isMultiple(of: 2) }
      text = "no rank, and even"
      answer = { $0.rank == nil && $0.value.isMultiple(of: 2) }
    case 4:
      (query, text, isOrdered) = (Query<Place>().matching(word + " "), "matching \(word)", false)
      answer = { $0.name.hasPrefix(word) || $0.name.hasSuffix(word) }
    case 5:
      let box = BoundingBox(south: -40, west: -100, north: Double(number) * 0.8, east: Double(number) * 1.7)
      (query, text, isOrdered) = (Query<Place>().within(box), "within \(box)", false)
      answer = { box.contains(latitude: $0.latitude, longitude: $0.longitude) }
    default:
      let names = [name, "\(word) \(word)"]
      (query, text) = (Query<Place>().where(\.name, in: names), "name in \(names)")
      answer = { names.contains($0.name) }
    }
    (self.isOrdered, self.comesBefore, self.window) = (isOrdered, comesBefore, window)
  }

  /// Returns what the query should give.
  func expected(in places: [Int: Place]) -> [Place] {
    let all = places.values.filter(answer).sorted(by: comesBefore)
    return window.lowerBound == 0 && window.upperBound == .max ? all : Array(all.dropFirst(window.lowerBound).prefix(window.count))
  }

  /// Compares an answer with what should come.
  func check(_ answer: [Place], in places: [Int: Place], mistake: Mistake?) throws {
    var found = isOrdered ? answer : answer.sorted { $0.id < $1.id }
    if mistake == .cutsAnswers, found.count > 5 { found.removeLast() }
    let wanted = expected(in: places)
    try expect(found == wanted, "the query '\(text)' gives \(found.map(\.id)), not \(wanted.map(\.id))")
  }
}
