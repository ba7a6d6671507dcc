import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let memoryScenarios = [
  Scenario(
    name: "memory", group: .disk, title: "Resident memory for each record, after opening", operation: "record",
    base: "the JSON of a record",
    goals: [
      Goal("Larder JSON", .atMost(400)), Goal("Larder SQLite", .atMost(400)), Goal("Larder JSON, four indexes", .atMost(600)),
    ],
    notes: ["The growth of a process of its own that opens the store and looks for a record; on Linux."],
    reason: "GRDB keeps no records in memory and reads them from the disk at every call."
  ) { bench in
    #if os(Linux)
      let places = try bench.places()
      return try await withDirectory { directory in
        for (_, store) in try await filled(directory, places, bench) { try await store.close() }
        var contenders: [Contender] = []
        for engine in bench.wanted(Engine.onDisk) {
          contenders.append(resident(engine, directory, places.count, indexed: false))
          if engine != .grdb { contenders.append(resident(engine, directory, places.count, indexed: true)) }
        }
        let bytes = try places.prefix(10_000).reduce(0) { try $0 + JSONEncoder().encode($1).count } / min(10_000, places.count)
        contenders.append(Contender(name: "the JSON of a record", kind: .limit, unit: .bytes) { _ in Double(bytes) })
        return try await bench.race(contenders, rounds: bench.rounds(3), warmUp: 0)
      }
    #else
      return []
    #endif
  }
]

private func resident(_ engine: Engine, _ directory: URL, _ count: Int, indexed: Bool) -> Contender {
  Contender(name: engine.title + (indexed ? ", four indexes" : ""), kind: engine.kind, unit: .bytes) { _ in
    let process = Process()
    process.executableURL = Bundle.main.executableURL
    process.arguments = ["resident", "--engine", engine.rawValue, "--directory", directory.path] + (indexed ? ["--indexed"] : [])
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard let bytes = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BenchError("expected a number of bytes, found “\(text)”")
    }
    return Double(bytes) / Double(count)
  }
}
