import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder
import Synchronization

let diskScenarios = [
  Scenario(
    name: "checkpoint", group: .disk, title: "Checkpoint with 1 % of the records changed", operation: "checkpoint",
    base: "write of the file",
    goals: [Goal("Larder SQLite", .atMost(5_000)), Goal("Larder JSON, longest save beside", .atMost(5_000))],
    notes: [
      "The longest save is that of one task that saves durably while the checkpoint runs; 1 % is 1,000 of 100,000 records."
    ],
    reason: "GRDB writes the pages that changed. A JSON file is one document and is written whole, beside the writers."
  ) { bench in
    let places = try bench.places()
    let changed = max(1, places.count / 100)
    return try await withDirectory { directory in
      var (contenders, stores): ([Contender], [any PlaceStore]) = ([], [])
      for engine in bench.wanted(Engine.onDisk) {
        let store: any PlaceStore =
          if engine == .grdb {
            try await GRDBStore(in: directory, .buffered)
          } else {
            try await LarderStore(engine, in: directory, StoreOptions(durability: .buffered, checkpoint: .manual))
          }
        try await store.save(contentsOf: places)
        try await store.checkpoint()
        stores.append(store)
        let change = { @Sendable (round: Int) in
          for number in 0..<changed { try await store.save(places[number * 97 % places.count].changed(round * changed + number)) }
        }
        contenders.append(
          Contender(name: engine.title, kind: engine.kind) { round in
            try await change(round)
            return try await clock.measure { try await store.checkpoint() }.microseconds
          })
        contenders.append(
          Contender(name: engine.title + ", longest save beside", kind: engine.kind) { round in
            try await change(round)
            return try await longestSave(places[1], round, in: store) { try await store.checkpoint() }
          })
      }
      if bench.wants(.write) {
        let bytes = try JSONEncoder().encode(places)
        let file = directory.appendingPathComponent("written")
        contenders.append(
          .timed("write of the file", .limit) { _ in
            // Replaced as a checkpoint does it, without the sync, which the system does on its own time here.
            try bytes.write(to: file, options: .atomic)
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      for store in stores { try await store.close() }
      return series
    }
  },
  Scenario(
    name: "bytes-written", group: .disk, title: "Bytes written for each byte saved, durable saves, all checkpoints and the end counted",
    operation: "byte saved", base: "SQLite in C",
    goals: [
      Goal("Larder JSON", .atMost(2.5)), Goal("Larder JSON, with idle times", .atMost(2.5)),
      Goal("Larder SQLite", .atMostTimes(1.1, of: "SQLite in C")),
    ],
    notes: [
      "What the process hands to the system to write (`wchar` in /proc/self/io), since filesystems count whole folios. Without it, as on macOS, left out.",
      "“With idle times” is a save every now and then, each followed by the checkpoint of an idle store.",
    ]
  ) { bench in
    guard try WrittenBytes.now() != nil else { return [] }
    let places = try bench.places()
    let count = bench.operations(10_000)
    let size = try places.prefix(1_000).reduce(0) { try $0 + JSONEncoder().encode($1.changed(0)).count } / min(1_000, places.count)
    var contenders: [Contender] = []
    for engine in bench.wanted(Engine.onDisk) {
      contenders.append(
        written(engine.title, engine.kind, count * size) { directory in
          let store: any PlaceStore =
            if engine == .grdb { try await GRDBStore(in: directory) } else { try await LarderStore(engine, in: directory) }
          try await store.save(contentsOf: places)
          try await store.checkpoint()
          return {
            for number in 0..<count { try await store.save(places[number * 31 % places.count].changed(number)) }
            try await store.close()
          }
        })
    }
    if bench.wants(.json) {
      let rare = max(20, count / 50)
      contenders.append(
        written("Larder JSON, with idle times", .larder, rare * size) { directory in
          let options = StoreOptions(checkpoint: .init(idle: .milliseconds(5), bySize: true))
          let store = try await LarderStore(.json, in: directory, options)
          try await store.save(contentsOf: places)
          try await store.checkpoint()
          return {
            for number in 0..<rare {
              try await store.save(places[number * 31 % places.count].changed(number))
              try await Task.sleep(for: .milliseconds(15))
            }
            try await store.close()
          }
        })
    }
    if bench.wants(.plainSQLite) {
      let ready = try readyRecords(places)
      contenders.append(
        written(Engine.plainSQLite.title, .limit, count * size) { directory in
          let plain = try PlainSQLite(in: directory)
          try plain.save(ready.map { ($0.id, $0.bytes(0)) }, round: 0)
          try plain.checkpoint()
          return {
            for number in 0..<count {
              let record = ready[number * 31 % ready.count]
              try plain.save(record.id, record.bytes(number), round: number)
            }
            try plain.checkpoint()
          }
        })
    }
    return try await bench.race(contenders, rounds: bench.rounds(3), warmUp: 0)
  },
]

/// Returns a contender that counts what is written between the preparation and the end, for each byte that was saved.
private func written(
  _ name: String, _ kind: Series.Kind, _ saved: Int, _ prepare: @escaping @Sendable (URL) async throws -> () async throws -> Void
) -> Contender {
  Contender(name: name, kind: kind, unit: .ratio) { _ in
    try await withDirectory { directory in
      let work = try await prepare(directory)
      guard let before = try WrittenBytes.now() else { return .nan }
      try await work()
      guard let after = try WrittenBytes.now() else { return .nan }
      return Double(after - before) / Double(saved)
    }
  }
}

/// Returns the time of the longest save of a task that saves for as long as the work takes.
private func longestSave(
  _ place: Place, _ round: Int, in store: any PlaceStore, during work: () async throws -> Void
) async throws -> Double {
  let flag = Flag()
  async let longest = {
    var (longest, number) = (0.0, 0)
    repeat {
      number += 1
      let changed = place.changed(round * 100_000 + number)
      longest = max(longest, try await clock.measure { try await store.save(changed) }.microseconds)
    } while !flag.isRaised
    return longest
  }()
  try await work()
  flag.raise()
  return try await longest
}

/// Tells a task that it may end.
private final class Flag: Sendable {
  private let state = Atomic(false)

  var isRaised: Bool { state.load(ordering: .relaxed) }

  func raise() { state.store(true, ordering: .relaxed) }
}

/// The bytes that this process has handed to the system to write.
enum WrittenBytes {
  /// Returns the bytes so far; `nil` where the system does not count them.
  static func now() throws -> Int? {
    let file = "/proc/self/io"
    guard FileManager.default.fileExists(atPath: file) else { return nil }
    let text = try String(contentsOfFile: file, encoding: .utf8)
    return text.split(separator: "\n").first { $0.hasPrefix("wchar:") }.flatMap { Int($0.dropFirst(7)) }
  }
}
