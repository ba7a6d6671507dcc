import Foundation
import Larder
import LarderTesting
import Testing

/// The explorer is tried on the smallest store there is: one file, replaced as a whole.
@Suite("The crash explorer", .timeLimit(.minutes(15)))
struct CrashExplorerTests {
  private struct Lost: Error {}

  private let explorer = CrashExplorer(seed: 1)

  /// Replaces "/a" three times, the right way.
  private func replace(_ files: any FileSystem, _ acknowledge: (String) -> Void) throws {
    for text in ["one", "two", "three"] {
      let file = try files.create("/a.tmp")
      try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
      try file.sync()
      try file.close()
      try files.rename("/a.tmp", to: "/a")
      try files.syncDirectory("/")
      acknowledge(text)
    }
  }

  private func check(_ image: CrashImage, _ acknowledged: [String]) throws {
    let files = image.fileSystem
    let all = ["one", "two", "three"]
    let found = files.contents(of: "/a").map { String(decoding: $0, as: UTF8.self) }
    let allowed = [acknowledged.last, all.dropFirst(acknowledged.count).first]
    if !allowed.contains(found) { throw Lost() }
  }

  @Test func aCorrectWorkloadPassesAtEveryPoint() throws {
    let result = try explorer.explore(workload: replace, check: check)
    #expect(result.points == 16)
    #expect(result.images > 50)
  }

  @Test func everyCrashPointIsReachedAndAcknowledgementsStopThere() throws {
    var seen: Set<Int> = []
    _ = try explorer.explore(workload: replace) { (_, acknowledged) in seen.insert(acknowledged.count) }
    #expect(seen == [0, 1, 2, 3])
  }

  @Test func aMissingDirectorySyncIsFound() throws {
    #expect(throws: CrashExplorer.Failure.self) {
      _ = try explorer.explore(through: { DirectorySyncIgnoring($0) }, workload: replace, check: check)
    }
  }

  @Test func aRenameBeforeTheSyncIsFound() throws {
    let failure = #expect(throws: CrashExplorer.Failure.self) {
      _ = try explorer.explore(
        through: { RenameBeforeSync($0) { $0.hasSuffix(".tmp") } }, workload: replace, check: check)
    }
    // Operations: create, write, rename, and before the sync that now comes last.
    #expect(failure?.point.operation == 4)
  }

  @Test func aMissingFileSyncIsFound() throws {
    #expect(throws: CrashExplorer.Failure.self) {
      _ = try explorer.explore(
        workload: { (files, acknowledge: (String) -> Void) in
          let file = try files.create("/a")
          try Array("one".utf8).withUnsafeBytes { try file.write($0, at: 0) }
          try files.syncDirectory("/")
          acknowledge("one")
        }, check: check)
    }
  }

  @Test func aFailureCanBeRepeated() throws {
    let failure = try #require(
      #expect(throws: CrashExplorer.Failure.self) {
        _ = try explorer.explore(through: { DirectorySyncIgnoring($0) }, workload: replace, check: check)
      })
    let (image, acknowledged) = try explorer.image(at: failure.point, through: { DirectorySyncIgnoring($0) }, workload: replace)
    #expect(image.summary == failure.summary)
    #expect(throws: Lost.self) { try check(image, acknowledged) }
    #expect(failure.description.contains("operation \(failure.point.operation)"))
  }

  @Test func aWorkloadThatFailsByItselfIsNotACrash() {
    #expect(throws: Lost.self) {
      _ = try explorer.explore(workload: { (_, _: (String) -> Void) in throw Lost() }, check: check)
    }
  }

  @Test func anExplorationStartsFromAnyState() throws {
    let start = SimulatedFileSystem()
    try start.create("/a").sync()
    try start.syncDirectory("/")
    let result = try explorer.explore(from: { start.copy() }, workload: { (files, _: (String) -> Void) in try files.remove("/a") }) {
      (image, _) in if image.fileSystem.paths.count > 1 { throw Lost() }
    }
    #expect(result.points == 2)
    #expect(start.paths == ["/a"])
  }
}
