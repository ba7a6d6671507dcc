import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A group commit is bounded: no write fails, or waits for memory, because of the size of others.
@Suite(.timeLimit(.minutes(15))) struct GroupSizeTests {
  struct Page: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var text: String
  }

  private static func page(_ id: Int, mebibytes: Int) -> Page {
    Page(id: id, text: String(decoding: Data(repeating: UInt8(ascii: "p"), count: mebibytes << 20), as: UTF8.self))
  }
  private static func bytes(_ batch: WriteBatch) -> Int { batch.records.reduce(0) { $0 + ($1.value?.count ?? 0) + $1.key.byteCount } }

  @Test func savesThatMeetAreCommittedInBoundedGroups() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: 0, text: "first")) }
    var waiting: [Task<Revision, any Error>] = []
    for id in 1...14 { waiting.append(try await disk.enqueue { try await $0.save(Self.page(id, mebibytes: 15)) }) }
    disk.backend.release(.commit)
    try await first.value
    for (index, save) in waiting.enumerated() { #expect(try await save.value == Revision(UInt64(index) + 2)) }
    #expect(disk.backend.batches.map(\.records.count) == [1, 4, 4, 4, 2])
    #expect(disk.backend.batches.allSatisfy { Self.bytes($0) <= WriteSize.group.bytes })
    #expect(try await disk.items.count() == 15)
  }

  @Test func recordsOfAGroupAreBoundedToo() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: -1, text: "")) }
    let half = WriteSize.group.records / 2
    var waiting: [Task<Revision, any Error>] = []
    for part in 0..<3 {
      let pages = (0..<half).map { Page(id: part * half + $0, text: "") }
      waiting.append(try await disk.enqueue { try await $0.save(contentsOf: pages) })
    }
    disk.backend.release(.commit)
    try await first.value
    for save in waiting { _ = try await save.value }
    #expect(disk.backend.batches.map(\.records.count) == [1, 2 * half, half])
  }

  /// The writes of a transaction are known when its closure has run, which is once.
  @Test func aTransactionThatIsTooMuchForItsGroupIsCommittedBehindIt() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: 0, text: "first")) }
    var calls: [Task<Int, any Error>] = []
    for id in 1...3 {
      calls.append(
        try await disk.enqueue { pages in
          try await pages.transaction { transaction in
            let before = try transaction.count(in: pages)
            for part in 0..<3 { try transaction.save(Self.page(id * 10 + part, mebibytes: 15), in: pages) }
            return before
          }
        })
    }
    let last = try await disk.enqueue { try await $0.save(Page(id: 99, text: "last")) }
    disk.backend.release(.commit)
    try await first.value
    var seen: [Int] = []
    for call in calls { seen.append(try await call.value) }
    #expect(seen == [1, 4, 7])  // each saw what the one before it wrote, in its own commit
    #expect(try await last.value == Revision(5))
    #expect(disk.backend.batches.map(\.commits) == [1...1, 2...2, 3...3, 4...5])
    #expect(try await disk.items.count() == 11)
  }

  @Test func oneWriteThatTheBackendCannotTakeFailsAlone() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: 0, text: "first")) }
    let small = try await disk.enqueue { try await $0.save(Page(id: 1, text: "small")) }
    let large = try await disk.enqueue { try await $0.save(contentsOf: (2...6).map { Self.page($0, mebibytes: 15) }) }
    let after = try await disk.enqueue { try await $0.save(Page(id: 7, text: "after")) }
    disk.backend.fail(.commit, call: 3, with: RepositoryError(.tooLarge))
    disk.backend.release(.commit)
    try await first.value
    _ = try await small.value
    #expect(await code(of: large) == .tooLarge)
    #expect(try await after.value == Revision(3))
    #expect(Set(try await disk.items.loadAll().map(\.id)) == [0, 1, 7])
  }

  @Test func aTransactionBehindACommitThatFailedFailsWithIt() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: 0, text: "first")) }
    let small = try await disk.enqueue { try await $0.save(Page(id: 1, text: "small")) }
    let large = try await disk.enqueue { pages in
      try await pages.transaction { transaction in
        for id in 2...6 { try transaction.save(Self.page(id, mebibytes: 15), in: pages) }
      }
    }
    let after = try await disk.enqueue { try await $0.save(Page(id: 7, text: "after")) }
    disk.backend.fail(.commit, call: 2, with: RepositoryError(.full))
    disk.backend.release(.commit)
    try await first.value
    #expect(await code(of: small) == .full)
    #expect(await code(of: large) == .full)
    #expect(try await after.value == Revision(2))
    #expect(Set(try await disk.items.loadAll().map(\.id)) == [0, 7])
  }

  @Test func writesThatWaitAreCommittedByClose() async throws {
    let disk = try await BusyDisk<Page>()
    let first = await disk.occupy { try await $0.save(Page(id: 0, text: "first")) }
    var waiting: [Task<Revision, any Error>] = []
    for id in 1...6 { waiting.append(try await disk.enqueue { try await $0.save(Self.page(id, mebibytes: 15)) }) }
    let items = disk.items
    let close = Task { try await items.close() }
    disk.backend.release(.commit)
    try await first.value
    try await close.value
    for save in waiting { _ = try await save.value }
    #expect(items.snapshot.count == 7)
  }
}
