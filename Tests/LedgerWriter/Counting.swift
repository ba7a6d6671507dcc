import Foundation
import Larder
import LarderSQLite

struct Counter: Codable, Identifiable, Sendable {
  let id: String
  var count: Int
}

/// Adds to one counter in a store that other processes add to as well: `LedgerWriter count FILE INCREMENTS TASKS [RESIDENCY TOTAL]`.
///
/// Waits for a line on its standard input after opening, so that all begin at once. Says `done` after each increment, and at the end the
/// longest that one took. With a total, a live query then waits until the counter has reached it, and the process says `seen`.
enum Counting {
  /// Adds to the counter and suspends the store after each increment: `LedgerWriter cycle FILE INCREMENTS ACCESS`.
  ///
  /// Asks again while another process has the store.
  static func cycle(_ arguments: [String], on backend: any StorageBackend) async throws {
    let options = StoreOptions(access: arguments.last == "shared" ? .shared : .exclusive, pollInterval: nil)
    let counters = try await retrying { try await LocalRepository<Counter>(backend: backend, schema: .init("counters"), options: options) }
    do {
      try await counters.insert(Counter(id: "all", count: 0))
    } catch {
      if error.code != .alreadyExists { throw error }  // another process was first
    }
    await counters.suspend()
    LedgerWriter.say("open")
    _ = readLine()
    for _ in 0..<(Int(arguments[3]) ?? 0) {
      try await retrying { try await counters.resume() }
      try await counters.update("all") { $0.count += 1 }
      await counters.suspend()
      LedgerWriter.say("done")
    }
    try await counters.close()
  }

  private static func retrying<Output>(_ body: () async throws -> Output) async throws -> Output {
    while true {
      do { return try await body() } catch RepositoryError.Code.locked { await Task.yield() }
    }
  }

  static func run(_ arguments: [String]) async throws {
    let file = URL(fileURLWithPath: arguments[2])
    let (increments, tasks) = (Int(arguments[3]) ?? 0, Int(arguments[4]) ?? 1)
    let residency = arguments.count > 5 && arguments[5] == "onDisk" ? Residency.onDisk(cache: .bytes(0)) : .full
    let counters = try await LocalRepository<Counter>(
      sqliteFile: file, schema: .init("counters"), options: .init(access: .shared, residency: residency))
    do {
      try await counters.insert(Counter(id: "all", count: 0))
    } catch {
      if error.code != .alreadyExists { throw error }  // another process was first
    }
    // The live query begins before the increments, so that it follows those of both processes.
    let total = arguments.count > 6 ? Int(arguments[6]) : nil
    let watch = Task { for try await found in counters.results(of: Query()) where total == nil || found.first?.count == total { break } }
    LedgerWriter.say("open")
    _ = readLine()
    let longest = await withTaskGroup(of: Duration.self) { group in
      for task in 0..<tasks {
        group.addTask {
          var longest = Duration.zero
          for _ in 0..<(increments / tasks + (task < increments % tasks ? 1 : 0)) {
            let start = ContinuousClock.now
            do {
              try await counters.update("all") { $0.count += 1 }
              LedgerWriter.say("done")
            } catch {
              LedgerWriter.say("failed \(error)")
            }
            longest = max(longest, .now - start)
          }
          return longest
        }
      }
      return await group.reduce(.zero, max)
    }
    LedgerWriter.say("longest \(longest)")
    try await watch.value
    if total != nil { LedgerWriter.say("seen") }
    try await counters.close()
  }
}
