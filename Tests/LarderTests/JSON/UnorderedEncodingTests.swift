import Foundation
import TestSupport
import Testing

@testable import Larder

/// Sets, and dictionaries that become arrays, have one encoding, whatever order their elements are in memory.
@Suite struct UnorderedEncodingTests {
  private enum Gear: String, Codable, CaseIterable {
    case rod, reel, net, boat, boots, hat, lamp, knife
  }

  private struct Place: Codable, Hashable {
    var name: String
    var days: Set<Int>
  }

  private struct Trip: Codable, Equatable {
    var tags: Set<String>
    var gear: [Gear: Int]
    var places: Set<Place>
    var nested: [[Gear: Set<String>]]
    var none: Set<String>?
    var byName: [String: Set<Int>]
    var order: [String]
  }

  /// Returns a set with elements inserted in a random order into a random capacity, on which the order in memory depends.
  private func shuffled<Element: Hashable>(_ elements: some Sequence<Element>, _ random: inout SeededGenerator) -> Set<Element> {
    var set = Set<Element>(minimumCapacity: random.int(1..<500))
    for element in Array(elements).shuffled(using: &random) { set.insert(element) }
    return set
  }

  private func shuffled<Key: Hashable, Value>(_ pairs: [Key: Value], _ random: inout SeededGenerator) -> [Key: Value] {
    var dictionary = [Key: Value](minimumCapacity: random.int(1..<500))
    for (key, value) in Array(pairs).shuffled(using: &random) { dictionary[key] = value }
    return dictionary
  }

  private func trip(_ random: inout SeededGenerator) -> Trip {
    let gear = Dictionary(uniqueKeysWithValues: Gear.allCases.enumerated().map { ($1, $0) })
    let sets = gear.mapValues { shuffled((0...$0).map { "\"\($0)], [é" }, &random) }
    return Trip(
      tags: shuffled((0..<20).map { "tag \($0)" }, &random), gear: shuffled(gear, &random),
      places: shuffled((0..<5).map { Place(name: "\($0)", days: shuffled(0..<9, &random)) }, &random), nested: [shuffled(sets, &random)],
      byName: shuffled(["a": shuffled(0..<7, &random), "b": []], &random), order: ["c", "a", "b"])
  }

  @Test func equalValuesHaveEqualBytes() throws {
    for seed in Seeds.list(20, for: "equalValuesHaveEqualBytes") {
      var random = SeededGenerator(seed)
      let trips = (0..<10).map { _ in trip(&random) }
      let encoder = DirectEncoder(depthLimit: 64)
      let texts = try trips.map { String(decoding: try encoder.encode($0).json, as: UTF8.self) }
      #expect(Set(texts).count == 1, "LARDER_SEED=\(seed)")
      // The order in memory did differ.
      #expect(Set(trips.map { $0.tags.map(\.self) }).count > 1, "LARDER_SEED=\(seed)")
      let read = try JSONDecoder().decode(Trip.self, from: Data(texts[0].utf8))
      #expect(read == trips[0])
      #expect(texts[0].contains(#""order":["c","a","b"]"#))
    }
  }

  @Test func entriesAreSortedByTheirBytes() throws {
    let json = try DirectEncoder(depthLimit: 8).encode([Gear.rod: 2, .boat: 11, .net: 1]).json
    #expect(String(decoding: json, as: UTF8.self) == #"["boat",11,"net",1,"rod",2]"#)
    let set = try DirectEncoder(depthLimit: 8).encode(Set(["b", "a,", "a\"", ""])).json
    #expect(String(decoding: set, as: UTF8.self) == #"["","a,","a\"","b"]"#)
  }
}
