import Foundation
import Larder

/// One scenario: measures on one backend and says what it found, as ratios within the run.
struct Scenario: Sendable {
  let name: String
  /// The backends on which it is worth measuring; work in memory alone is the same on all of them.
  var backends = Backend.onDisk
  let run: @Sendable (Backend) async throws -> String
}

let clock = ContinuousClock()

extension Duration {
  var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12 }
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
func text(_ value: Double) -> String { String(format: "%.2f", value) }

let storingScenarios = [
  Scenario(name: "save at 100,000 records : save at 1,000") { backend in
    try await withDirectory { small in
      try await withDirectory { large in
        let (few, many) = (try await backend.open(in: small), try await backend.open(in: large))
        try await few.save(contentsOf: (0..<1_000).map(Spot.sample))
        try await many.save(contentsOf: (0..<100_000).map(Spot.sample))
        try await few.checkpoint()
        try await many.checkpoint()
        var (smallTimes, largeTimes): ([Double], [Double]) = ([], [])
        for round in 0..<1_500 {  // interleaved, so that a slow moment of the machine meets both
          let spot = Spot.sample(round)
          smallTimes.append(try await clock.measure { try await few.save(spot) }.microseconds)
          largeTimes.append(try await clock.measure { try await many.save(spot) }.microseconds)
        }
        try await few.close()
        try await many.close()
        let mean = { (times: [Double]) in times.reduce(0, +) / Double(times.count) }
        return "median \(text(median(largeTimes) / median(smallTimes))), mean \(text(mean(largeTimes) / mean(smallTimes)))"
          + " (\(text(median(smallTimes))) µs at 1,000)"
      }
    }
  },
  Scenario(name: "save over a journal of 10,000, 100,000 and 300,000 changes : of none", backends: [.json]) { backend in
    try await withDirectory { directory in
      var stores: [LocalRepository<Spot>] = []
      for count in [0, 10_000, 100_000, 300_000] {
        let place = directory.appendingPathComponent("\(count)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let spots = try await backend.open(in: place, .init(durability: .buffered, checkpoint: .manual))
        try await spots.save(contentsOf: (0...count).map(Spot.sample))
        stores.append(spots)
      }
      let spot = Spot.sample(1)
      let times = try await medians(rounds: 5_000, stores.map { spots in { _ in try await spots.save(spot) } })
      for spots in stores { try await spots.close() }
      return times.dropFirst().map { text($0 / times[0]) }.joined(separator: ", ") + " (\(text(times[0])) µs over none)"
    }
  },
  Scenario(name: "find from the main actor, touched records") { backend in
    try await withDirectory { directory in
      let spots = try await backend.open(in: directory)
      let samples = (0..<100_000).map(Spot.sample)
      try await spots.save(contentsOf: samples)
      _ = try await spots.loadAll()
      let time = try await findAll(samples, in: spots)
      try await spots.close()
      return "\(text(time)) µs"
    }
  },
  Scenario(name: "saves per second, 64 tasks : one task") { backend in
    try await withDirectory { directory in
      let spots = try await backend.open(in: directory)
      let samples = (0..<6_400).map(Spot.sample)
      var ratios: [Double] = []
      for _ in 0..<5 {
        let one = try await clock.measure { for spot in samples.prefix(400) { try await spots.save(spot) } }.microseconds / 400
        let many =
          try await clock.measure {
            try await withThrowingTaskGroup(of: Void.self) { group in
              for task in 0..<64 {
                let part = samples[(task * 100)..<(task * 100 + 100)]
                group.addTask { for spot in part { try await spots.save(spot) } }
              }
              try await group.waitForAll()
            }
          }.microseconds / 6_400
        ratios.append(one / many)
      }
      try await spots.close()
      return "median \(text(median(ratios))) (\(ratios.map(text).joined(separator: ", ")))"
    }
  },
  Scenario(name: "decoding 100,000 with JSONDecoder : open and first find") { backend in
    try await withDirectory { directory in
      let samples = (0..<100_000).map(Spot.sample)
      let first = try await backend.open(in: directory)
      try await first.save(contentsOf: samples)
      try await first.close()
      let array = try JSONEncoder().encode(samples)
      var ratios: [Double] = []
      for _ in 0..<5 {
        let start = clock.now
        let spots = try await backend.open(in: directory)
        guard try await spots.find(by: samples[500].id) != nil else { throw CocoaError(.coderValueNotFound) }
        let opening = (clock.now - start).microseconds
        try await spots.close()
        let decoding = try clock.measure { _ = try JSONDecoder().decode([Spot].self, from: array) }.microseconds
        ratios.append(decoding / opening)
      }
      return "median \(text(median(ratios))) (\(ratios.map(text).joined(separator: ", ")))"
    }
  },
]

@MainActor func findAll(_ samples: [Spot], in spots: LocalRepository<Spot>) async throws -> Double {
  var found = 0
  let time = try await clock.measure {
    for spot in samples where try await spots.find(by: spot.id) != nil { found += 1 }
  }
  guard found == samples.count else { throw CocoaError(.coderValueNotFound) }
  return time.microseconds / Double(samples.count)
}
