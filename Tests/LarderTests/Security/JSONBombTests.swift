import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// Texts that cost an attacker little and a careless reader everything, on the stack of a secondary thread of Darwin.
@Suite("Security: JSON bombs", .timeLimit(.minutes(2))) struct JSONBombTests {
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

  private func bombs() -> [(String, Data)] {
    let size = Torture.isOn ? 100_000_000 : 1_000_000
    func data(_ head: String, _ piece: String, _ count: Int, _ tail: String) -> Data {
      var data = Data(head.utf8)
      let bytes = Data(piece.utf8)
      data.reserveCapacity(head.utf8.count + bytes.count * count + tail.utf8.count)
      for _ in 0..<count { data.append(bytes) }
      data.append(Data(tail.utf8))
      return data
    }
    return [
      ("arrays", data("{\"id\":1,\"list\":", "[", 500_000, "")),
      ("closed arrays", data(String(repeating: "[", count: 200_000), "]", 200_000, "")),
      ("objects", data("", "{\"a\":", 300_000, "")), ("mixed", data("{\"id\":1,\"x\":", "[{\"a\":", 200_000, "")),
      ("digits", data("{\"id\":1,\"number\":", "9", size, "}")), ("fraction", data("{\"id\":1,\"number\":0.", "0", size, "1}")),
      ("integer", data("{\"id\":1,\"integer\":", "9", size, "}")), ("exponent", data("{\"id\":1,\"number\":1e", "9", size, "}")),
      ("string", data("{\"id\":1,\"text\":\"", "x", size, "\"}")), ("escapes", data("{\"id\":1,\"text\":\"", "\\u0041", size / 6, "\"}")),
      ("open string", data("{\"id\":1,\"text\":\"", "\\\\", size / 2, "")), ("names", data("{\"id\":1", ",\"id\":1", size / 7, "}")),
      ("spaces", data("{\"id\":1", " ", size, "}")), ("commas", data("{\"id\":1,\"list\":[", ",", size, "]}")),
      ("elements", data("{\"id\":1,\"list\":[1", ",1", size / 20, "]}")), ("zeros", Data(count: size)),
      ("surrogates", data("{\"id\":1,\"text\":\"", "\\ud800", size / 6, "\"}")),
    ]
  }

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
    let header =
      #"{"format":"larder","formatVersion":1,"store":"C0FFEE00-1234-4567-89AB-CDEF01234567","generation":1,"commit":1,"tombstonesSince":0"#
    for (name, bomb) in bombs() {
      for prefix in [
        "", header + ",\"x\":",
        header + ",\"crc\":\"00000000\",\"records\":[\n{\"in\":\"a\",\"id\":\"a\",\"rev\":1,\"version\":1,\"crc\":\"00000000\",\"value\":",
      ] {
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
