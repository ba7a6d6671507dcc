import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

private let encoding = "Larder's encoding"
private let syncedEncoding = "write + fdatasync + encoding"
private let plainEncoding = "SQLite in C + encoding"

let savingScenarios = [
  Scenario(
    name: "save", group: .saving, title: "Save one changed record, durably", operation: "save", base: syncedEncoding,
    goals: [
      Goal("Larder JSON", .atMostTimes(1.15, of: syncedEncoding)), Goal("Larder SQLite", .atMostTimes(1.15, of: plainEncoding)),
      Goal("Larder JSON", .timesFaster(1, than: "GRDB")), Goal("Larder SQLite", .timesFaster(1, than: "GRDB")),
    ],
    notes: [
      "The limits write bytes that were encoded before, plus Larder's encoding, measured by saves that a closed store refuses.",
      "On another thread, as everything that may block: two threads are woken for each save, one to write and one to go on.",
      "The actor over a file rewrites all records and syncs nothing.",
    ]
  ) { bench in
    let places = try bench.places()
    let saves = bench.operations(200)
    return try await withDirectory { directory in
      let stores = try await filled(directory, places, bench)
      var contenders = stores.map { engine, store in
        Contender.repeated(engine, "", saves) { number in try await store.save(places[number * 31 % places.count].changed(number)) }
      }
      if bench.wants(.plainSQLite) {
        let plain = try PlainSQLite(in: directory)
        let ready = try readyRecords(places)
        try plain.save(ready.map { ($0.id, $0.bytes(0)) }, round: 0)
        contenders.append(
          .repeated(.plainSQLite, "", saves) { number in
            let record = ready[number * 31 % ready.count]
            try plain.save(record.id, record.bytes(number), round: number)
          })
        let writer = WriterThread()
        contenders.append(
          .repeated(.plainSQLite, " on another thread", saves) { number in
            try await writer.run {
              let record = ready[number * 31 % ready.count]
              // Other bytes than those of the contender without a thread.
              try plain.save(record.id, record.bytes(number + 4_000_000), round: number)
            }
          })
      }
      if bench.wants(.write) {
        let file = try SyncedFile(in: directory)
        let ready = try readyRecords(Array(places.prefix(1_000)))
        contenders += appending(ready, to: file, saves)
        let encoder = try await Encoding()
        contenders.append(encoder.contender(encoding, .limit, Array(places.prefix(1_000))))
      }
      if bench.wants(.fileActor) {
        let store = try FileActorStore(in: directory)
        try await store.save(contentsOf: places)
        contenders.append(.repeated(.fileActor, "", 1) { number in try await store.save(places[number % places.count].changed(number)) })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(11))
      for store in stores { try await store.1.close() }
      return series.adding(sum: ["write + fdatasync", encoding], as: syncedEncoding).adding(
        sum: ["SQLite in C", encoding], as: plainEncoding)
    }
  },
  Scenario(
    name: "save-64", group: .saving, title: "Save durably from 64 tasks at once", operation: "save", base: "SQLite in C, groups of 64",
    goals: [
      Goal("Larder JSON", .atMostTimes(1.5, of: "SQLite in C, groups of 64")), Goal("Larder JSON", .timesFaster(12, than: "GRDB")),
      Goal("Larder SQLite", .atMostTimes(1.5, of: "SQLite in C, groups of 64")), Goal("Larder SQLite", .timesFaster(12, than: "GRDB")),
    ],
    notes: ["The limit commits 64 records in one transaction, on one thread."]
  ) { bench in
    let places = try bench.places()
    let each = bench.operations(40)
    return try await withDirectory { directory in
      let stores = try await filled(directory, places, bench)
      var contenders = stores.map { engine, store in
        Contender.timed(engine, operations: 64 * each) { round in
          try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
              group.addTask {
                for save in 0..<each {
                  let number = (round * 64 + task) * each + save
                  try await store.save(places[number * 31 % places.count].changed(number))
                }
              }
            }
            try await group.waitForAll()
          }
        }
      }
      if bench.wants(.plainSQLite) {
        let plain = try PlainSQLite(in: directory)
        let ready = try readyRecords(places)
        try plain.save(ready.map { ($0.id, $0.bytes(0)) }, round: 0)
        contenders.append(
          .timed("SQLite in C, groups of 64", .limit, operations: 64 * each) { round in
            for group in 0..<each {
              let first = (round * each + group) * 64
              try plain.save(
                (first..<first + 64).map { (ready[$0 * 31 % ready.count].id, ready[$0 * 31 % ready.count].bytes($0)) }, round: first)
            }
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      for store in stores { try await store.1.close() }
      return series
    }
  },
  Scenario(
    name: "batch", group: .saving, title: "Save all records in one call", operation: "record", base: "SQLite in C, sorted",
    goals: [
      Goal("Larder JSON", .atMost(4)), Goal("Larder JSON", .timesFaster(10, than: "GRDB")), Goal("Larder SQLite", .atMost(6.5)),
      Goal("Larder SQLite", .timesFaster(6.5, than: "GRDB")),
    ],
    notes: ["Into an empty store, durable at the end; opening and closing are not counted."]
  ) { bench in
    let places = try bench.places()
    var contenders = bench.wanted([.memory, .json, .sqlite, .grdb]).map { engine in
      Contender(name: engine.title, kind: engine.kind) { _ in
        try await withDirectory { directory in
          let store: any PlaceStore =
            if engine == .grdb { try await GRDBStore(in: directory) } else { try await LarderStore(engine, in: directory) }
          let start = clock.now
          try await store.save(contentsOf: places)
          let time = (clock.now - start).microseconds / Double(places.count)
          try await store.close()
          return time
        }
      }
    }
    if bench.wants(.grdb) {
      contenders.append(
        Contender(name: "GRDB, new records only", kind: .peer) { _ in
          try await withDirectory { directory in
            let store = try await GRDBStore(in: directory)
            let time = try await clock.measure { try await store.insert(contentsOf: places) }.microseconds / Double(places.count)
            try await store.close()
            return time
          }
        })
    }
    if bench.wants(.plainSQLite) {
      let ready = try readyRecords(places).map { ($0.id, $0.bytes(0)) }.sorted { $0.0 < $1.0 }
      contenders.append(
        Contender(name: "SQLite in C, sorted", kind: .limit) { _ in
          try await withDirectory { directory in
            let plain = try PlainSQLite(in: directory)
            return try clock.measure { try plain.save(ready, round: 0) }.microseconds / Double(places.count)
          }
        })
    }
    return try await bench.race(contenders, rounds: bench.rounds(5))
  },
  changing("update", "Change one record in place, durably", goal: 2) { store, place, number in
    try await store.update(place.id, population: 2_000_000 + number)
  },
  changing("delete", "Delete one record, durably", goal: 2) { store, place, _ in try await store.delete(place.id) },
]

/// Returns a scenario that changes records one by one; each record once.
private func changing(
  _ name: String, _ title: String, goal: Double, _ change: @escaping @Sendable (any PlaceStore, Place, Int) async throws -> Void
) -> Scenario {
  Scenario(
    name: name, group: .saving, title: title, operation: name, base: "write + fdatasync",
    goals: ["Larder JSON", "Larder SQLite"].map { Goal($0, .timesFaster(goal, than: "GRDB")) }
  ) { bench in
    let places = try bench.places()
    let rounds = bench.rounds(9)
    let changes = min(bench.operations(200), places.count / (rounds + 1))
    return try await withDirectory { directory in
      let stores = try await filled(directory, places, bench)
      var contenders = stores.map { engine, store in
        Contender.repeated(engine, "", changes) { number in try await change(store, places[number], number) }
      }
      if bench.wants(.write) {
        let file = try SyncedFile(in: directory)
        let ready = try readyRecords(Array(places.prefix(1_000)))
        contenders += appending(ready, to: file, changes)
      }
      let series = try await bench.race(contenders, rounds: rounds)
      for store in stores { try await store.1.close() }
      return series
    }
  }
}

/// Returns the contenders that append records to a file and sync it: in the task, which blocks its thread, and on another thread.
private func appending(_ records: [ReadyRecord], to file: SyncedFile, _ operations: Int) -> [Contender] {
  let writer = WriterThread()
  return [
    .repeated(.write, "", operations) { number in try file.append(records[number % records.count].bytes(number)) },
    .repeated(.write, " on another thread", operations) { number in
      try await writer.run { try file.append(records[number % records.count].bytes(number)) }
    },
  ]
}

/// Returns a store of every engine on disk, with all records in it.
func filled(_ directory: URL, _ places: [Place], _ bench: Bench) async throws -> [(Engine, any PlaceStore)] {
  var stores: [(Engine, any PlaceStore)] = []
  for engine in bench.wanted(Engine.onDisk) {
    let store: any PlaceStore =
      if engine == .grdb { try await GRDBStore(in: directory) } else { try await LarderStore(engine, in: directory) }
    try await store.save(contentsOf: places)
    try await store.checkpoint()
    stores.append((engine, store))
  }
  return stores
}

/// Returns records of which every round gives other bytes, encoded before.
func readyRecords(_ places: [Place]) throws -> [ReadyRecord] {
  try places.map { try ReadyRecord(id: $0.id.uuidString, $0.changed(0), population: 1_000_000) }
}
