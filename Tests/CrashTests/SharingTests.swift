import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

struct Counter: Codable, Identifiable, Sendable {
  let id: String
  var count: Int
}

@Suite("Processes that share a store", .serialized, .timeLimit(.minutes(Torture.isOn ? 30 : 15))) struct SharingTests {
  private let directory: TemporaryDirectory
  private let file: URL
  /// How often each process adds one; `LARDER_INCREMENTS` sets another number.
  private let increments = ProcessInfo.processInfo.environment["LARDER_INCREMENTS"].flatMap(Int.init) ?? 200

  init() throws {
    directory = try TemporaryDirectory()
    file = directory.url.appendingPathComponent("counters.sqlite")
  }

  private func open(_ access: StoreOptions.Access, poll: Duration? = nil) async throws(RepositoryError) -> LocalRepository<Counter> {
    try await LocalRepository(sqliteFile: file, schema: .init("counters"), options: .init(access: access, pollInterval: poll))
  }

  /// Processes that are open and wait for the word to begin.
  private func counting(_ number: Int, tasks: Int, increments: Int? = nil) throws -> [WriterProcess] {
    let processes = try (0..<number).map { _ in try WriterProcess("count", file.path, "\(increments ?? self.increments)", "\(tasks)") }
    for process in processes { try #require(process.nextLine() == "open") }
    return processes
  }

  @Test(arguments: [1, 4]) func eightProcessesLoseNoIncrement(_ tasks: Int) async throws {
    let processes = try counting(8, tasks: tasks)
    let start = ContinuousClock.now
    for process in processes { try process.letGo() }
    var done = 0
    var longest: [Substring] = []
    for process in processes {
      while let line = process.nextLine() {
        if line == "done" {
          done += 1
        } else if line.hasPrefix("longest ") {
          longest.append(line.dropFirst(8))
        } else {
          Issue.record("\(line)")
        }
      }
      process.waitUntilExit()
    }
    print(
      "8 processes of \(tasks) tasks: \(done) increments in \(ContinuousClock.now - start), one took at most \(longest.sorted().last ?? "")"
    )
    #expect(done == 8 * increments)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["counters.sqlite"])
    let counters = try await open(.exclusive)
    #expect(try await counters.find(by: "all")?.count == 8 * increments)
    try await counters.close()
  }

  /// One process has its records in memory, and the other leaves them in the database.
  @Test func processesOfDifferentResidenciesLoseNoIncrement() async throws {
    let total = 2 * increments
    let processes = try ["full", "onDisk"].map { residency in
      try WriterProcess("count", file.path, "\(increments)", "1", residency, "\(total)")
    }
    for process in processes { try #require(process.nextLine() == "open") }
    for process in processes { try process.letGo() }
    for process in processes {
      var lines: [Substring: Int] = [:]
      while let line = process.nextLine() { lines[line, default: 0] += 1 }
      process.waitUntilExit()
      #expect(lines["done"] == increments && lines["seen"] == 1, "\(lines)")
    }
    let counters = try await open(.exclusive)
    #expect(try await counters.find(by: "all")?.count == total)
    try await counters.close()
  }

  /// Each process gives its locks up after every increment, and others write between.
  @Test(arguments: [("json", "exclusive"), ("sqlite", "exclusive"), ("sqlite", "shared")])
  func processesThatTakeTurnsLoseNoIncrement(_ kind: String, _ access: String) async throws {
    let file = directory.url.appendingPathComponent("turns.\(kind)")
    let cycles = Torture.count(40, full: 5_000)
    let processes = try (0..<2).map { _ in try WriterProcess("cycle", file.path, "\(cycles)", access) }
    for process in processes { try #require(process.nextLine() == "open") }
    for process in processes { try process.letGo() }
    for process in processes {
      while let line = process.nextLine() { if line != "done" { Issue.record("\(line)") } }
      process.waitUntilExit()
    }
    #expect(try directory.locks() == [])
    let backend: any StorageBackend = kind == "json" ? JSONFileBackend(file: file) : SQLiteBackend(file: file)
    let store = try await Store.open(backend)
    #expect(store.openReport.isClean)
    let counters = try await store.repository(RepositorySchema<Counter>("counters"))
    #expect(try await counters.find(by: "all")?.count == 2 * cycles)
    #expect(await store.verify().problems.isEmpty)
    try await store.close()
  }

  @Test func aProcessThatIsKilledTakesNothingFromTheOthers() async throws {
    let endless = try counting(2, tasks: 2, increments: 1_000_000)
    let others = try counting(2, tasks: 2)
    for process in endless + others { try process.letGo() }
    var done = 0
    for process in endless {
      for _ in 0..<increments / 4 where process.nextLine() == "done" { done += 1 }
      process.kill()
      while process.nextLine() == "done" { done += 1 }
      process.waitUntilExit()
    }
    for process in others {
      while process.nextLine() == "done" { done += 1 }
      process.waitUntilExit()
    }
    // Each task of a killed process may have committed one more than it could say.
    let store = try await Store.open(SQLiteBackend(file: file), options: .init(access: .shared))
    let count = try await store.repository(RepositorySchema<Counter>("counters")).find(by: "all")?.count ?? 0
    #expect((done...done + 4).contains(count))
    #expect(done >= 2 * increments + 2 * (increments / 4))
    #expect(await store.verify().problems.isEmpty)
    try await store.close()
  }

  @Test(arguments: [StoreOptions.Access.shared, .readOnly])
  func aReaderIsToldWhatAnotherProcessCommits(_ access: StoreOptions.Access) async throws {
    let process = try #require(try counting(1, tasks: 1).first)
    let reader = try await open(access, poll: .milliseconds(20))
    #expect(try await reader.find(by: "all")?.count == 0)
    try process.letGo()
    // Nobody asks it to look: a reader that does not poll waits here until the time limit.
    for try await counters in reader.results(of: Query()) where counters.first?.count == increments { break }
    process.waitUntilExit()
    #expect(try await reader.find(by: "all")?.count == increments)
    try await reader.close()
  }

  @Test func exclusiveAndSharedProcessesExcludeEachOther() async throws {
    let sharing = try WriterProcess("hold", file.path, "shared")
    #expect(sharing.nextLine() == "open")
    let exclusive = await #expect(throws: RepositoryError.self) { _ = try await open(.exclusive) }
    #expect(exclusive?.code == .locked)
    try await open(.shared).close()
    try await open(.readOnly).close()
    let third = try WriterProcess("hold", file.path, "shared")
    #expect(third.nextLine() == "open")
    sharing.kill()
    sharing.waitUntilExit()
    let still = await #expect(throws: RepositoryError.self) { _ = try await open(.exclusive) }
    #expect(still?.code == .locked)
    try third.letGo()
    third.waitUntilExit()

    let alone = try WriterProcess("hold", file.path)
    #expect(alone.nextLine() == "open")
    let shared = await #expect(throws: RepositoryError.self) { _ = try await open(.shared) }
    #expect(shared?.code == .locked)
    try await open(.readOnly).close()
    alone.kill()
    alone.waitUntilExit()
    try await open(.shared).close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["counters.sqlite"])
  }
}
