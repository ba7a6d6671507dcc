import Foundation
import Larder
import TestSupport
import Testing

/// Main files beside journals and logs of other moments, other generations, other stores, and backups.
///
/// A main file and a log belong together when the log was begun on that main file. Then they open as of the log's moment; otherwise they
/// are refused, because the two together would be a store that never was.
@Suite("The world: main files and logs of different times", .timeLimit(.minutes(15))) struct LineageTests {
  private let directory: TemporaryDirectory
  private let work: TemporaryDirectory

  init() throws { (directory, work) = (try TemporaryDirectory(inMemory: !Torture.isOn), try TemporaryDirectory(inMemory: !Torture.isOn)) }

  /// The files of a store at a moment of its history.
  private struct Moment {
    let name: String
    /// The main file that the log continues, and the one before it.
    let base: String
    let previous: String
    let main: Data
    let log: Data?
    let index: Data?
    /// The contents of the main file alone, and with its log.
    let folded: Set<String>
    let all: Set<String>
  }

  /// Lives through three generations of two commits each, every generation in a collection of its own; returns all moments.
  private func history(_ backing: Backing, line: String, from files: [String: Data] = [:]) throws -> [Moment] {
    try work.fill(files)
    let store = try backing.open(work.file(backing.fileName))
    var moments: [Moment] = []
    // A copy of a JSON file goes on with its journal; SQLite folds a log when it is opened.
    var (folded, all) = (backing == .json ? [] : store.keys, store.keys)
    func base(_ generation: Int) -> String {
      line == "c" && generation == 0 ? (backing == .json ? "a0" : "a1") : "\(line)\(generation)"
    }
    var commit = store.report.commit.number
    for generation in 0..<3 {
      if generation > 0 {
        try store.backend.checkpoint()
        folded = all
      }
      for _ in 0..<2 {
        commit += 1
        try store.save(commit, in: "\(line)\(generation)")
        all.insert("\(line)\(generation)/\(commit)")
        let found = try work.contents()
        let main = try #require(found[backing.fileName])
        moments.append(
          Moment(
            name: "\(line)\(commit)", base: base(generation), previous: base(generation - 1), main: main,
            log: found[backing.fileName + backing.log], index: found[backing.fileName + "-shm"], folded: folded, all: all))
      }
    }
    try store.backend.backup(to: work.file("backup"))
    let backup = try Data(contentsOf: work.file("backup"))
    moments.append(
      Moment(name: "backup \(line)", base: "backup \(line)", previous: "", main: backup, log: nil, index: nil, folded: all, all: all))
    store.backend.abandon()
    return moments
  }

  @Test(arguments: Backing.allCases) func aLogOpensOnlyWithTheMainFileItContinues(_ backing: Backing) throws {
    let ours = try history(backing, line: "a")
    let others = try history(backing, line: "b")
    // A copy of the first generation, taken while it was open, goes on by itself.
    let start = [backing.fileName: ours[1].main, backing.fileName + backing.log: try #require(ours[1].log)]
    let copy = try history(backing, line: "c", from: start)
    let moments = ours + others + copy
    var count = 0
    for (row, main) in moments.enumerated() {
      for (column, log) in moments.enumerated() {
        let accesses = Torture.isOn ? backing.accesses : [backing.accesses[(row + column) % backing.accesses.count]]
        for access in accesses {
          // Beside another writer's index, too, where SQLite has one.
          let isChosen = Torture.isOn || (row + column) % 5 == 0
          for index in isChosen ? Set([nil, log.index, main.index]) : [nil] {
            try check(backing, main, log, index, access)
            count += 1
          }
        }
      }
    }
    print("figures: situations \(count) (main files and logs of \(backing))")
  }

  private func check(_ backing: Backing, _ main: Moment, _ log: Moment, _ index: Data?, _ access: StoreOptions.Access) throws {
    var files = [backing.fileName: main.main]
    files[backing.fileName + backing.log] = log.log
    if log.log != nil { files[backing.fileName + "-shm"] = index }
    try directory.fill(files)
    let what = "\(backing), main \(main.name), log \(log.name), \(access), index \(index != nil)"
    let before = try directory.fingerprint(without: [backing.fileName + "-shm"])
    let answer = backing.answer(directory.file(backing.fileName), access)
    #expect(answer == expected(backing, main, log), "\(what)")
    guard case .refused = answer else { return }
    #expect(try directory.fingerprint(without: [backing.fileName + "-shm"]) == before, "\(what): a refusal leaves everything as it was")
  }

  private func expected(_ backing: Backing, _ main: Moment, _ log: Moment) -> Answer {
    if log.log == nil { return .everything(main.folded) }
    if main.base == log.base { return .everything(log.all) }
    switch backing {
    // A crash between the new document and its journal leaves the one before, which may have gone on while the document was written.
    case .json: if main.previous == log.base { return .everything(main.folded.union(log.all)) }
    // A crash before the log was emptied leaves all of it, of which the database has everything.
    case .sqlite: if main.folded == log.all { return .everything(main.folded) }
    }
    return .refused(.corrupted)
  }
}
