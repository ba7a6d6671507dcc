import Foundation
import Larder

/// The fixed steps that a writer makes while its system calls are failed: `LedgerWriter script FILE`, and afterwards without faults
/// `LedgerWriter check FILE OUTPUT`, with what it said.
///
/// Says `begin`, and then `done` or `failed CODE`, with the number of each step. See Scripts/Torture/system-calls.sh.
struct Script {
  enum Step {
    case open, close, checkpoint
    case save([String])
    case delete([String], save: [String] = [])
  }

  /// The steps: all kinds of writes, before a checkpoint, behind it and in a store that is opened again.
  static let steps: [Step] = [
    .open, .save(["a"]), .save(["b"]), .save(["c", "d", "e"]), .delete(["b"]), .checkpoint,
    .save(["a"]), .save((0..<60).map { "g\($0)" }), .delete(["c", "g7"], save: ["h"]), .save(["a"]), .close,
    .open, .save(["f"]), .save(["c", "d", "e"]), .checkpoint, .delete(["e"]), .save(["a"]), .close,
  ]

  private let backend: @Sendable () -> any StorageBackend
  private var entries: LocalRepository<Entry>?
  private var model = ScriptModel()

  init(_ backend: @escaping @Sendable () -> any StorageBackend) { self.backend = backend }

  /// Makes the steps, whatever fails, and looks after each at what the store says that it holds.
  mutating func run() async {
    for (number, step) in Self.steps.enumerated() {
      say("begin \(number)")
      model.begin(number)
      do {
        try await make(step, number)
        say("done \(number)")
        model.end(number)
        if let entries, let problem = model.problem(of: try await entries.loadAll()) { say("lost after step \(number): \(problem)") }
      } catch let error as RepositoryError {
        say("failed \(number) \(error.code)")
        model.end(number, error.code.description)
        // Whether the write is there is known after reopening; the next step does that. A lock that could not be let go of stays until then.
        if [.outcomeUnknown, .poisoned, .closed, .locked].contains(error.code) { await abandon() }
      } catch {
        say("untyped \(number) \(error)")
      }
    }
    await abandon()
    say("end")
  }

  private mutating func make(_ step: Step, _ number: Int) async throws {
    if case .close = step {
      let open = entries.take()
      try await open?.close()
      return
    }
    let entries = try await opened()
    let entry: @Sendable (String) -> Entry = { Entry(id: $0, step: number, padding: String(repeating: "x", count: 1_500)) }
    switch step {
    case .open, .close: break
    case .checkpoint: try await entries.checkpoint()
    case .save(let keys) where keys.count == 1: for key in keys { try await entries.save(entry(key)) }
    case .save(let keys): try await entries.save(contentsOf: keys.map(entry))
    case .delete(let keys, let saved) where saved.isEmpty && keys.count == 1: for key in keys { try await entries.delete(key) }
    case .delete(let keys, let saved):
      try await entries.transaction { transaction in
        for key in keys { try transaction.delete(key, in: entries) }
        for key in saved { try transaction.save(entry(key), in: entries) }
      }
    }
  }

  private mutating func opened() async throws -> LocalRepository<Entry> {
    if let entries { return entries }
    let opened = try await LocalRepository<Entry>(
      backend: backend(), schema: .init("entries"), options: .init(checkpoint: .manual))
    entries = opened
    return opened
  }

  private mutating func abandon() async {
    guard let open = entries.take() else { return }
    do { try await open.close() } catch { say("unclosed \(error.code)") }
  }

  private func say(_ line: String) { LedgerWriter.say(line) }
}
