import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// Two stores of one directory, of which one is suspended while the other works.
@Suite("Blob stores that take turns", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct BlobTurnsTests {
  /// What one of the two programs has.
  private struct Party {
    var shelf: BlobShelf
    /// The writers that are open.
    var writers: [Writer] = []
    /// The saves that wait until the store is resumed: begun while it was suspended, or beside the call that has suspended it.
    var saves: [Save] = []
  }

  private struct Writer {
    let writer: BlobWriter
    let key: String
    /// The bytes that it was given; a writer that was given none has no file.
    let text: String
    let turn: Int
    /// The number of removals of its key before it.
    let removals: Int
  }

  private struct Save {
    let task: Task<Void, any Error>
    let key: String
    let text: String
    /// Whether it may have made its file, which the other store removes.
    let mayBeLost: Bool

    /// Returns whether the bytes were stored.
    func end() async throws -> Bool {
      do {
        try await task.value
        return true
      } catch let error as RepositoryError where mayBeLost && error.code == .dataMissing {
        return false
      }
    }
  }

  private struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  @Test func noBlobIsEverOtherBytesThanAWriteHasStored() async throws {
    for seed in Seeds.list(Torture.count(12, full: 2_000), for: "noBlobIsEverOtherBytesThanAWriteHasStored") {
      do { try await run(seed) } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
        return
      }
    }
  }

  private func run(_ seed: UInt64) async throws {
    var random = SeededGenerator(seed)
    let files = SimulatedFileSystem()
    // With a small limit a blob may be gone; it is never another.
    let isLimited = random.chance(30)
    let limits = BlobStore.Limits(memoryCount: random.int(0..<4), diskCount: isLimited ? 3 : 100)
    let keys = ["a", "b", "c", "d", "e"]
    var known: [String: String] = [:]
    var stored: [String: Set<String>] = [:]
    var number = 0
    var removals: [String: Int] = [:]
    var parties: [Party] = []
    for _ in 0..<2 {
      parties.append(Party(shelf: try await BlobShelf(on: files, limits, suspensionTimeout: .seconds(600))))
      await parties[parties.count - 1].shelf.blobs.suspend()
    }
    for turn in 0..<random.int(4..<12) {
      let (active, idle) = (turn % 2, 1 - turn % 2)
      if random.chance(20) {
        // Its writers are over, and so are the saves that wait.
        try await parties[active].shelf.close()
        for save in parties[active].saves { _ = await code(of: save.task) }
        parties[active] = Party(shelf: try await BlobShelf(on: files, limits, suspensionTimeout: .seconds(600)))
      } else {
        try await parties[active].shelf.blobs.resume()
      }
      // One after another, since saves of one key that run at once may end in either order.
      for save in parties[active].saves {
        if try await save.end() { known[save.key] = save.text }
      }
      parties[active].saves = []
      let blobs = parties[active].shelf.blobs
      for _ in 0..<random.int(0..<12) {
        let key = keys[random.int(0..<keys.count)]
        number += 1
        let text = "\(key) \(number) " + String(repeating: "x", count: random.int(0..<200))
        switch random.int(0..<12) {
        case 0..<4:
          stored[key, default: []].insert(text)
          try await blobs.save(text, for: key)
          known[key] = text
        case 4:
          try await blobs.remove(key)
          known[key] = nil
          removals[key, default: 0] += 1
        case 5:
          if random.chance(20) {
            try await blobs.clear()
            known = [:]
            for key in keys { removals[key, default: 0] += 1 }
          }
        case 6: blobs.removeFromMemory()
        case 7:
          let writer = try await blobs.writer(for: key)
          let text = random.chance(80) ? text : ""
          if !text.isEmpty { try await writer.write(Data(text.utf8)) }
          parties[active].writers.append(
            Writer(writer: writer, key: key, text: text, turn: turn, removals: removals[key] ?? 0))
        case 8:
          guard let entry = parties[active].writers.popLast() else { continue }
          let wasRemoved = removals[entry.key] ?? 0 > entry.removals
          // Between two turns of a store the other one has the directory.
          try await finish(entry, &known, &stored, mayBeLost: turn > entry.turn && !entry.text.isEmpty, wasRemoved: wasRemoved)
        case 9:
          // The idle store may show what was, and never another thing.
          let blobs = parties[idle].shelf.blobs
          if random.chance(50) { blobs.removeFromMemory() }
          if let data = try await blobs.blob(for: key)?.data, stored[key]?.contains(String(decoding: data, as: UTF8.self)) != true {
            throw Difference(description: "the suspended store has for \(key) what nobody has stored")
          }
        case 10:
          let blobs = parties[idle].shelf.blobs
          // One key at most has a save that waits.
          guard parties[idle].saves.isEmpty else { continue }
          stored[key, default: []].insert(text)
          let task = Task { try await blobs.save(text, for: key) }
          parties[idle].saves.append(Save(task: task, key: key, text: text, mayBeLost: false))
        default: try await check(blobs, key, known[key], isLimited)
        }
      }
      for key in keys { try await check(blobs, key, known[key], isLimited) }
      let (key, text) = (keys[random.int(0..<keys.count)], "beside \(turn)")
      stored[key, default: []].insert(text)
      let task = Task { try await blobs.save(text, for: key) }
      for _ in 0..<random.int(0..<20) { await Task.yield() }
      await blobs.suspend()
      if try await blobs.blob(for: key)?.data == Data(text.utf8) {
        try await task.value
        known[key] = text
      } else {
        parties[active].saves.append(Save(task: task, key: key, text: text, mayBeLost: true))
      }
    }
    for party in parties {
      // A save that waits is refused when its store is closed.
      try await party.shelf.close()
      for save in party.saves { _ = await code(of: save.task) }
      guard party.shelf.reports.codes.isEmpty else { throw Difference(description: "reported: \(party.shelf.reports.text)") }
    }
    let last = try await BlobShelf(on: files, limits, suspensionTimeout: .seconds(600))
    for key in keys { try await check(last.blobs, key, known[key], isLimited) }
    guard last.blobs.openReport.orphans.isEmpty, last.blobs.openReport.missing.isEmpty else {
      throw Difference(description: "at the end: \(last.blobs.openReport)")
    }
    try await last.close()
  }

  private func finish(
    _ entry: Writer, _ known: inout [String: String], _ stored: inout [String: Set<String>], mayBeLost: Bool, wasRemoved: Bool
  ) async throws {
    do {
      try await entry.writer.finish()
    } catch {
      if error.code == .dataMissing, mayBeLost { return }
      if error.code == .cancelled, wasRemoved { return }
      throw error
    }
    known[entry.key] = entry.text
    stored[entry.key, default: []].insert(entry.text)
  }

  private func check(_ blobs: BlobStore, _ key: String, _ expected: String?, _ isLimited: Bool) async throws {
    let found = try await blobs.blob(for: key).map { String(decoding: $0.data, as: UTF8.self) }
    if found == expected || isLimited && found == nil { return }
    throw Difference(description: "\(key): expected \(expected ?? "nothing"), found \(found ?? "nothing")")
  }
}
