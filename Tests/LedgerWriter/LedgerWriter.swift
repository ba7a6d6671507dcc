// A process that writes to a store until it is killed, and says on its standard output what it begins and what was acknowledged.
// Its parent, in Tests/CrashTests, keeps the ledger and compares it with what is in the store afterwards.

import Foundation
import Larder
import LarderSQLite
import LarderTesting

/// A record of the ledger: which task wrote it last, and in which of its steps.
struct Entry: Codable, Identifiable, Sendable {
  let id: String
  var step: Int
  var padding: String
}

@main struct LedgerWriter {
  /// Writes or holds a store: `LedgerWriter write FILE SEED FIRST-STEP [WORKLOAD]` or `LedgerWriter hold FILE [ACCESS]`; or counts in one that is
  /// shared or suspended, see ``Counting``; or migrates one, see `migrate`; or makes the steps of a
  /// ``Script``.
  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments[1] == "count" || arguments[1] == "cycle" {
      do {
        if arguments[1] == "count" {
          try await Counting.run(arguments)
        } else {
          try await Counting.cycle(arguments, on: backend(URL(fileURLWithPath: arguments[2])))
        }
      } catch {
        say("failed \(error)")
        exit(1)
      }
      return
    }
    let file = URL(fileURLWithPath: arguments[2])
    let backend = backend(file)
    if arguments[1] == "script" || arguments[1] == "check" { return await script(file, arguments) }
    if arguments[1] == "migrate" { return try await migrate(backend, arguments.last == "shared" ? .shared : .exclusive) }
    let workload = arguments[1] == "write" ? Workload(arguments.last ?? "") : .init("")
    let access: StoreOptions.Access = arguments.last?.hasPrefix("shared") == true ? .shared : .exclusive
    // A writer with an even seed leaves the records in the files, so that both kinds of writers follow each other on one store.
    let isPaged = arguments[1] == "write" && (UInt64(arguments[3]) ?? 1).isMultiple(of: 2)
    let options = StoreOptions(access: access, checkpoint: .manual, residency: isPaged ? .onDisk(cache: .bytes(10_000)) : .full)
    let entries: LocalRepository<Entry>
    if arguments[1] == "write" { say("opening") }
    do {
      entries = try await LocalRepository(backend: backend, schema: .init("entries"), options: options)
    } catch {
      say("refused \(error.code)")
      exit(1)
    }
    say("open")
    if arguments[1] == "hold" {
      _ = readLine()
      try await entries.close()
      return
    }
    let (seed, first) = (UInt64(arguments[3]) ?? 0, Int(arguments[4]) ?? 0)
    await withTaskGroup(of: Void.self) { group in
      for task in workload.tasks {
        group.addTask {
          do {
            try await run(entries, task: task, workload, seed: seed, from: first)
          } catch {
            say("failed \(task) \(error)")
          }
        }
      }
    }
  }

  private static func backend(_ file: URL) -> any StorageBackend {
    file.pathExtension == "json" ? JSONFileBackend(file: file) : SQLiteBackend(file: file)
  }

  /// Makes the steps of the script, or checks what they have left; see ``Script``.
  private static func script(_ file: URL, _ arguments: [String]) async {
    if arguments[1] == "script" {
      var script = Script { backend(file) }
      return await script.run()
    }
    do {
      try await ScriptModel.check(backend(file), try String(contentsOf: URL(fileURLWithPath: arguments[3]), encoding: .utf8))
    } catch {
      say("failed \(error)")
    }
  }

  /// Opens a store of old records, says "rewritten COUNT" after every batch and "finished TOTAL" at the end, and checks meanwhile what is
  /// read.
  private static func migrate(_ backend: any StorageBackend, _ access: StoreOptions.Access) async throws {
    let options = StoreOptions(access: access, migration: .init(batchSize: 64, progress: { progress in say("rewritten \(progress.done)") }))
    do {
      let places = try await LocalRepository<Place>(backend: backend, schema: Place.schema, options: options)
      say("open")
      let count = try await places.count()
      let reads = Task {
        var random = SeededGenerator(seed: UInt64(count))
        var number = 0
        while !Task.isCancelled {
          number = Int(random.next() % UInt64(count))
          let place = try await places.find(by: number)
          if place != Place(migrated: number) { say("failed read of \(number): \(String(describing: place))") }
          await Task.yield()
        }
      }
      try await places.finishMigration()
      reads.cancel()
      try await reads.value
      let total = places.migrationProgress.total
      try await places.close()
      say("finished \(total)")
    } catch {
      say("failed \(error)")
      exit(1)
    }
  }

  /// One task's steps: each is said to begin, done, and said to be acknowledged.
  ///
  /// A task touches only its own keys.
  private static func run(_ entries: LocalRepository<Entry>, task: Int, _ workload: Workload, seed: UInt64, from first: Int) async throws {
    var random = SeededGenerator(seed: seed &+ UInt64(task) &* 0x9E37)
    for step in first... {
      if task == Workload.checkpointTask {
        say("begin \(task) \(step) nothing")
        try await entries.checkpoint()
        say("done \(task) \(step)")
        continue
      }
      let size = random.next() % 40 == 0 ? 5_000 : 40
      let entry: @Sendable (Int) -> Entry = { key in Entry(id: "\(task)-\(key)", step: step, padding: String(repeating: "x", count: size)) }
      let key = Int(random.next() % 10)
      switch workload.isBulk(task) ? 10 : random.next() % 10 {
      case 10:
        // Batches overlap, so that one that is half there shows also where its keys were there before.
        let (from, count) = (key * 20, 100 + Int(random.next() % 300))
        say("begin \(task) \(step) bulk \(from) \(count)")
        try await entries.save(contentsOf: (from..<from + count).map(entry))
      case 0:
        say("begin \(task) \(step) delete \(key)")
        try await entries.delete("\(task)-\(key)")
      case 1, 2:
        say("begin \(task) \(step) batch")
        try await entries.save(contentsOf: (0..<5).map(entry))
      case 3:
        say("begin \(task) \(step) replace")
        try await entries.transaction { transaction in
          for key in 0..<5 { try transaction.delete("\(task)-\(key)", in: entries) }
          for key in 5..<10 { try transaction.save(entry(key), in: entries) }
        }
      case 4 where random.next() % 4 == 0:
        say("begin \(task) \(step) nothing")
        try await entries.checkpoint()
      default:
        say("begin \(task) \(step) save \(key)")
        try await entries.save(entry(key))
      }
      say("done \(task) \(step)")
    }
  }

  /// Writes a line with one system call, so that it is out when this returns.
  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    bytes.withUnsafeBytes { _ = Foundation.write(1, $0.baseAddress, $0.count) }
  }
}

/// A record as the first version had it.
struct OldPlace: Codable, Identifiable, Sendable {
  let id: Int
  var title: String
  var count: Int
}

/// The record now.
///
/// Its step adds to the count, so that a record which is migrated twice shows it.
struct Place: Codable, Identifiable, Equatable, Sendable {
  let id: Int
  var name: String
  var count: Int
  var padding: String

  init(_ old: OldPlace) { (id, name, count, padding) = (old.id, old.title, old.count + 1, String(repeating: "x", count: old.id % 97)) }

  /// Returns the record that this number must have.
  init(migrated number: Int) { self.init(OldPlace(id: number, title: "place \(number)", count: number * 3)) }

  static let schema = RepositorySchema<Place>(
    "places", version: 2, migrations: [.init(from: 1, OldPlace.self, to: Place.self) { Place($0) }])
}
