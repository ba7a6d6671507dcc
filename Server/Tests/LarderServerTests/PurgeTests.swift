import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// Which deletions are forgotten.
@Suite(.timeLimit(.minutes(15))) struct PurgeTests {
  @Test func anAgeBeyondAllTimesForgetsNothing() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLSyncStore.open(sqlite: directory.file("s"), logger: LogLines().logger())
    _ = try await store.push(onePush(), to: "a", by: "ann")
    _ = try await store.push(onePush(seq: 2, base: 1, value: nil), to: "a", by: "ann")
    for days in [.infinity, 1e30, .nan, .greatestFiniteMagnitude, 1e11, 1] {
      #expect(try await store.purge(olderThanDays: days) == 0, "\(days)")
    }
    #expect(try await store.purge(olderThanDays: -.infinity) == 1)
    await store.close()
  }

  @Test(arguments: ["inf", "1e30", "nan", "-1", "1000001"]) func theCommandSaysWhichAgesItTakes(days: String) async throws {
    let directory = try TemporaryDirectory()
    await #expect {
      try await ServerProcess.run("sqlite:\(directory.file("s"))", ["purge", "--days=\(days)"])
    } throws: { error in
      "\(error)".contains("Expected 0 to 1000000 for --days")
    }
  }
}
