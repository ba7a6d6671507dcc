import Foundation
import Larder
import LarderTesting
import Testing

/// A JSON store that was suspended while others appended to its journal: it goes on with what they wrote, without reading its main file.
@Suite("The journal of a resumed JSON store", .timeLimit(.minutes(15))) struct ResumedJournalTests {
  private static let main = "/data/spots.json"
  private static let journal = main + "-journal"
  private let files = SimulatedFileSystem()

  private func backend() -> JSONFileBackend {
    // Main files that are not small: a close leaves the journal.
    JSONFileBackend(file: URL(fileURLWithPath: Self.main), fileSystem: files, tuning: .init(journalChunk: 4_096, smallFile: 0))
  }

  /// Opens a backend, and returns it with the values that it hands out.
  private func open(_ files: SimulatedFileSystem? = nil) throws -> (backend: JSONFileBackend, values: [String: String]) {
    let backend = JSONFileBackend(
      file: URL(fileURLWithPath: Self.main), fileSystem: files ?? self.files, tuning: .init(journalChunk: 4_096, smallFile: 0))
    var values: [String: String] = [:]
    _ = try backend.openAndRecover(.init()) { values[$0.key.text] = $0.value.map { String(decoding: $0, as: UTF8.self) } }
    return (backend, values)
  }

  private func save(
    _ value: String?, at key: String, as commit: UInt64, on backend: JSONFileBackend, _ durability: Durability = .durable
  ) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey(key), revision: Revision(commit), schemaVersion: 1, value: value.map { Data("\"\($0)\"".utf8) })
    try backend.commit(WriteBatch(records: [record], commits: commit...commit, durability: durability))
  }

  private func told(_ foreign: ForeignCommits?) -> [String: String?] {
    Dictionary(uniqueKeysWithValues: (foreign?.records ?? []).map { ($0.key.text, $0.value.map { String(decoding: $0, as: UTF8.self) }) })
  }

  /// Makes a store with a main file that outweighs its journal, whose newest commit is the 20th, and suspends it.
  private func makeSuspendedStore() throws -> JSONFileBackend {
    let first = try open().backend
    for commit in 1...20 as ClosedRange<UInt64> {
      try save(String(repeating: "x", count: 2_000), at: "key \(commit)", as: commit, on: first)
    }
    try first.checkpoint()
    return first
  }

  @Test(arguments: [true, false], [true, false])
  func aResumedStoreGoesOnWithWhatWasAppended(_ hasFrames: Bool, _ isClosed: Bool) throws {
    let first = try makeSuspendedStore()
    if hasFrames { try save("mine", at: "key 1", as: 21, on: first) }
    try first.suspend()
    let next: UInt64 = hasFrames ? 22 : 21
    let second = try open().backend
    try save("theirs", at: "key 1", as: next, on: second)
    try save("theirs", at: "key 2", as: next + 1, on: second, .buffered)
    try save(nil, at: "key 2", as: next + 2, on: second)
    if isClosed { try second.close() } else { try second.suspend() }

    let reads = files.readCount
    #expect(try first.resume())
    #expect(files.readCount - reads < 30)
    let foreign = try first.foreignCommits(after: Revision(next - 1))
    #expect(foreign?.commit == Revision(next + 2))
    #expect(told(foreign) == ["key 1": "\"theirs\"", "key 2": nil])
    #expect(try first.foreignCommits(after: Revision(next + 2)) == nil)
    #expect(first.verify().problems.isEmpty)

    try save("mine again", at: "key 3", as: next + 3, on: first)
    try first.suspend()
    #expect(try first.resume())
    #expect(try first.foreignCommits(after: Revision(next + 3)) == nil)
    try first.checkpoint()
    #expect(first.verify().problems.isEmpty)
    try first.close()
    let values = try open().values
    #expect(values["key 1"] == "\"theirs\"" && values["key 2"] == nil && values["key 3"] == "\"mine again\"")
    #expect(values.count == 19)
  }

  /// Another process that only looks puts a copy of the journal in its place.
  @Test func aStoreThatWasOnlyOpenedIsNotReadAnew() throws {
    let first = try makeSuspendedStore()
    try save("mine", at: "key 1", as: 21, on: first)
    for _ in 0..<3 {
      try first.suspend()
      try open().backend.close()
      #expect(try first.resume())
      #expect(try first.foreignCommits(after: Revision(21)) == nil)
    }
    try save("mine", at: "key 2", as: 22, on: first)
    #expect(first.verify().problems.isEmpty)
    try first.close()
    #expect(try open().values["key 2"] == "\"mine\"")
  }

  /// A process that was killed may have left a commit that no sync has reached: what is committed on top of it must not depend on that.
  @Test func whatAKilledProcessLeftIsMadeDurable() throws {
    let first = try makeSuspendedStore()
    try first.suspend()
    let second = try open().backend
    try save("durable", at: "key 1", as: 21, on: second)
    try save("buffered", at: "key 2", as: 22, on: second, .buffered)
    second.abandon()
    #expect(try first.resume())
    try save("mine", at: "key 3", as: 23, on: first)
    for image in files.crashImages(.powerLoss) {
      let values = try open(image.fileSystem).values
      #expect(values["key 1"] == "\"durable\"" && values["key 2"] == "\"buffered\"" && values["key 3"] == "\"mine\"")
    }
  }

  /// Whatever else was done to the files has the store read anew, which finds out what that was.
  @Test(arguments: ["checkpoint", "older journal", "another journal", "torn commit", "no journal", "damage", "cut"])
  func anythingElseIsReadAnew(_ change: String) throws {
    let first = try makeSuspendedStore()
    try save("old", at: "key 1", as: 21, on: first)
    try first.suspend()
    let older = try #require(files.contents(of: Self.journal))
    #expect(try first.resume())
    try save("mine", at: "key 1", as: 22, on: first)
    try first.suspend()
    let second = try open().backend
    try save("theirs", at: "key 2", as: 23, on: second)
    if change == "checkpoint" { try second.checkpoint() }
    try second.suspend()
    let newer = try #require(files.contents(of: Self.journal))
    let end = try #require(newer.lastIndex { $0 != 0 })
    switch change {
    case "older journal": try files.place(older, at: Self.journal)
    case "another journal":
      // With as many commits as the one that was left, and one more.
      try files.place(older, at: Self.journal)
      let third = try open().backend
      try save("mono", at: "key 1", as: 22, on: third)
      try save("other", at: "key 3", as: 23, on: third)
      third.abandon()
    case "torn commit":
      var torn = newer
      for index in (end - 8)...end { torn[index] = 0 }
      try files.place(torn, at: Self.journal)
    case "no journal": try files.remove(Self.journal)
    case "damage":
      var damaged = newer
      damaged[100] ^= 1
      try files.place(damaged, at: Self.journal)
    case "cut": try files.place(newer.prefix(end), at: Self.journal)
    default: break
    }
    #expect(try !first.resume())
    // Let go: others can open it, unless it is damaged.
    do throws(RepositoryError) {
      _ = try backend().openAndRecover(.init()) { _ in }
    } catch {
      #expect(error.code == .corrupted)
    }
  }

  /// A failure on the way leaves the store suspended, with all of it to be told the next time.
  @Test func aFailureOnTheWayIsTriedAgain() throws {
    let first = try makeSuspendedStore()
    try save("mine", at: "key 1", as: 21, on: first)
    try first.suspend()
    let second = try open().backend
    try save("theirs", at: "key 2", as: 22, on: second)
    try second.suspend()
    var failures = 0
    for step in 1...100 {
      files.fail(FaultPlan(.operation(files.operationCount + step), code: .inputOutput))
      do {
        let goesOn = try first.resume()
        files.fail()
        #expect(goesOn)
        #expect(told(try first.foreignCommits(after: Revision(21))) == ["key 2": "\"theirs\""])
        try save("mine", at: "key 3", as: 23, on: first)
        break
      } catch let error as RepositoryError {
        files.fail()
        failures += 1
        #expect(error.code == .inputOutput)
      }
    }
    #expect(failures > 2)
    try first.close()
    let values = try open().values
    #expect(values["key 2"] == "\"theirs\"" && values["key 3"] == "\"mine\"")
  }
}
