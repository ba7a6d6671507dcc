import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// Texts that cost an attacker little and a careless reader everything, on the stack of a secondary thread of Darwin.
@Suite("Security: JSON bombs", .timeLimit(.minutes(15))) struct JSONBombTests {
  private struct Value: Codable, Identifiable, Sendable {
    let id: Int
    var number: Double?
    var integer: Int?
    var text: String?
    var list: [Int]?
  }

  /// Runs a body on a thread with a small stack.
  private func onSmallStack<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      let thread = Thread { continuation.resume(returning: body()) }
      thread.stackSize = 512 << 10
      thread.start()
    }
  }

  private func bombs() -> [(String, Data)] { JSONBombs.all(size: Torture.isOn ? 100_000_000 : 1_000_000) }

  /// Each ends with a value or an error, whatever the coder.
  @Test func noTextOverflowsTheStack() async throws {
    for (name, bomb) in bombs() {
      for coding in [StoreOptions.Coding.larder, .foundation] where coding == .larder || bomb.count < 1_000_000 {
        let coder = RecordCoder<Value>(schemaVersion: 1, limits: .init(recordBytes: 1 << 30, jsonDepth: 128), coding: coding)
        let isDecoded = await onSmallStack {
          do {
            return try coder.decode(bomb, key: RecordKey("1")).id == 1
          } catch {
            return false
          }
        }
        let isValue = ["string", "escapes", "spaces", "elements"].contains(name)
        if coding == .larder,
          ["arrays", "closed arrays", "objects", "mixed", "commas", "zeros", "open string", "surrogates"].contains(name)
        {
          #expect(!isDecoded, "\(name)")
        } else if isValue {
          #expect(isDecoded, "\(name), \(coding)")
        }
      }
    }
  }

  /// The main file is JSON too, and its reader meets the same texts before any checksum.
  @Test func noMainFileOverflowsTheStack() async throws {
    for (name, bomb) in bombs() {
      for prefix in JSONBombs.beginnings {
        let files = SimulatedFileSystem()
        try files.createDirectory("/data")
        try files.place(Data(prefix.utf8) + bomb, at: "/data/a.json")
        let found = await onSmallStack { () -> RepositoryError.Code? in
          do throws(RepositoryError) {
            _ = try JSONFileBackend(file: URL(fileURLWithPath: "/data/a.json"), fileSystem: files).open(.init()) { _ in }
            return nil
          } catch { return error.code }
        }
        #expect(found == .corrupted || found == .notOurStore, "\(name), \(prefix.count): \(String(describing: found))")
      }
    }
  }
}
