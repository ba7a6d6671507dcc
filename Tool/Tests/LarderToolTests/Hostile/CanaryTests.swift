import Foundation
import Larder
import LarderTesting
import LarderToolKit
import Testing

/// A word that is in keys, members and values is in no answer that is documented to hide them, in no failure, and in no name of a file.
@Suite(.timeLimit(.minutes(15))) struct CanaryTests {
  private static let canary = "hunter2-8c1f0d"
  /// A part of it that would be in a shortened text.
  private static let part = "hunter2"

  /// Makes a store with the word, as a kill or a close leaves it.
  private func store(_ kind: StoreKind, isClosed: Bool, in workspace: Workspace) throws -> String {
    let word = Self.canary
    let (live, files) = (try Workspace(), try StoreFile(newAt: workspace.path("letters.\(kind.rawValue)"), kind: kind))
    let backend = try StoreFile(newAt: live.path("letters.\(kind.rawValue)"), kind: kind).backend
    _ = try backend.recover(backend.open(StoreOptions()) { _ in })
    for commit in 1...6 as ClosedRange<UInt64> {
      // Long keys too, of which damage to a length may show a part.
      let key = commit % 2 == 0 ? "\(word)-\(commit)" : "\(commit)-" + String(repeating: word, count: 9)
      let value = #"{"\#(word)":"\#(word)","n":\#(commit),"id":"\#(key)"}"#
      let records = [("letters", key, value), ("notes", key, commit == 3 ? word : nil)].map {
        StoredRecord(
          collection: $0.0, key: RecordKey($0.1), revision: Revision(commit), schemaVersion: 1, value: $0.2.map { Data($0.utf8) })
      }
      try backend.commit(WriteBatch(records: records, commits: commit...commit))
      if commit == 3 { try backend.checkpoint() }
    }
    if isClosed { try backend.close() }
    for ending in SampleStore.endings where FileManager.default.fileExists(atPath: live.path("letters.\(kind.rawValue)") + ending) {
      try FileManager.default.copyItem(atPath: live.path("letters.\(kind.rawValue)") + ending, toPath: files.path + ending)
    }
    if !isClosed { try backend.close() }
    return files.path
  }

  private func check(_ command: TriedCommand, _ answer: TriedCommand.Answered, _ context: String) {
    if command.showsContents, answer.status != .refused { return }
    // What holds the word is not printed here either.
    #expect(!answer.text.contains(Self.part), "\(command) of \(context)")
  }

  @Test(arguments: StoreKind.allCases, [true, false]) func theWordOfASoundStoreIsHidden(_ kind: StoreKind, _ isClosed: Bool) async throws {
    let workspace = try Workspace()
    let store = try store(kind, isClosed: isClosed, in: workspace)
    let trial = try ToolTrial(store, in: workspace)
    try trial.run(TriedCommand.allCases, "a sound store") { check($0, $1, "a sound store") }
    guard !isClosed else { return }
    for command in [.verify, .inspect, .backup, .repair] as [TriedCommand] {
      let run = try await trial.runBuilt(command, "a sound store")
      #expect(!(run.output + run.errors).contains(Self.part), "\(command)")
    }
  }

  @Test(arguments: StoreKind.allCases, [true, false]) func theWordOfADamagedStoreIsHidden(_ kind: StoreKind, _ isClosed: Bool) throws {
    var generator = Sampling.generator(for: "the word of a damaged store (\(kind))")
    let workspace = try Workspace()
    let store = try store(kind, isClosed: isClosed, in: workspace)
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).sorted()
    let trial = try ToolTrial(store, in: workspace)
    for round in 0..<Sampling.count(20, full: 4_000) {
      let name = names[Int.random(in: names.indices, using: &generator)]
      let whole = try Data(contentsOf: workspace.url(name))
      let damaged = Self.damage(whole, &generator)
      try damaged.write(to: workspace.url(name))
      let context = "\(name), round \(round) of \(kind), \(isClosed)"
      let writing = TriedCommand.writing
      let commands = [.verify, .inspect, .history, .query, .repair, writing[round % writing.count]] as [TriedCommand]
      try trial.run(commands, context) { check($0, $1, context) }
      try whole.write(to: workspace.url(name))
    }
  }

  /// Damages bytes, more often than not close to where the word begins: there are the lengths and the names.
  private static func damage(_ bytes: Data, _ generator: inout SeededGenerator) -> Data {
    let starts = bytes.indices.filter { bytes[$0] == UInt8(ascii: "h") && bytes[$0...].starts(with: Data(part.utf8)) }
    guard Int.random(in: 0..<3, using: &generator) > 0, let start = starts.randomElement(using: &generator) else {
      return Damage.random(max(1, bytes.count), &generator).applied(to: bytes)
    }
    var damaged = bytes
    let at = max(0, min(bytes.count - 1, start + Int.random(in: -16...4, using: &generator)))
    damaged[at] = Bool.random(using: &generator) ? UInt8.random(in: .min ... .max, using: &generator) : damaged[at] &+ 2
    return damaged
  }

  /// The head of a row, which says how long each column is, stands before the key, or before the collection and the key.
  @Test func aRepairTakesNoKeyForACollection() throws {
    let workspace = try Workspace()
    let store = try store(.sqliteFile, isClosed: true, in: workspace)
    let (source, target) = (try StoreFile(path: store), try StoreFile(newAt: workspace.path("new.sqlite")))
    let whole = try Data(contentsOf: source.url)
    let starts = whole.indices.filter { at in
      let word = whole[at...].starts(with: Data(Self.part.utf8))
      return word && (whole[at - 1] < 0x20 || whole[at - 1] == UInt8(ascii: "s") || whole[at - 1] == UInt8(ascii: "-"))
    }
    #expect(starts.count > 10)
    var options = Repair.Options()
    options.isDry = true
    var losses = 0
    for start in starts {
      // A number in the place of a text, and a text that is longer than it was.
      for (offset, byte) in (1...4).map({ ($0, UInt8(0x08)) }) + (9...14).map({ ($0, 0x39) }) {
        var bytes = whole
        bytes[start - offset] = byte
        try bytes.write(to: source.url)
        let repair = try Repair(of: source, to: target, options)
        if repair.status != .success { losses += 1 }
        let text = repair.lines(width: nil).joined() + repair.json.text
        #expect(!text.contains(Self.part), "\(byte) at \(start - offset)")
      }
    }
    #expect(losses > 20)
  }

  @Test func aTableWithoutAHeaderIsNotShown() async throws {
    let workspace = try Workspace()
    try Data("\(Self.canary),\(Self.canary)\n1,2\n".utf8).write(to: workspace.url("table.csv"))
    let run = try await larder(
      "import", "csv", workspace.path("table.csv"), "--to", workspace.path("new.json"), "--collection", "letters", "--id", "id")
    #expect(run.code == 2 && !run.errors.contains(Self.part))
  }
}
