import Foundation
import Larder
import LarderSQLite

struct Counter: Codable, Identifiable, Sendable {
  let id: String
  var count: Int
}

/// Adds to one counter in a store that other processes add to as well: `LedgerWriter count FILE INCREMENTS TASKS`.
///
/// Waits for a line on its standard input after opening, so that all begin at once. Says `done` after each increment, and at the end the
/// longest that one took.
enum Counting {
  static func run(_ arguments: [String]) async throws {
    let file = URL(fileURLWithPath: arguments[2])
    let (increments, tasks) = (Int(arguments[3]) ?? 0, Int(arguments[4]) ?? 1)
    let counters = try await LocalRepository<Counter>(
      sqliteFile: file, schema: .init("counters"), options: .init(access: .shared))
    do {
      try await counters.insert(Counter(id: "all", count: 0))
    } catch {
      if error.code != .alreadyExists { throw error }  // another process was first
    }
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
    try await counters.close()
  }
}
