import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderToolKit

@Suite struct WritingTests {
  private func sample(_ kind: StoreKind, _ workspace: Workspace, isClosed: Bool = false, commits: Int = 40) throws -> SampleStore {
    var random = SeededGenerator(seed: 11)
    return try SampleStore(kind, in: workspace, commits: commits, isClosed: isClosed, &random)
  }

  /// Compares everything that two stores hold; a dump without tombstones loses those.
  private func expectSame(_ path: String, _ sample: SampleStore, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let records = try StoreReading(path: path).records
    let differing = records.count { record in sample.newest[record.address].map { $0.equals(record) } != true }
    #expect(records.count == sample.newest.count && differing == 0, sourceLocation: sourceLocation)
  }

  @Test(arguments: StoreKind.allCases, StoreKind.allCases) func `a converted store is equal to the first`(from: StoreKind, to: StoreKind)
    async throws
  {
    let workspace = try Workspace()
    let sample = try sample(from, workspace)
    let before = try sample.bytes()
    let target = workspace.path("new.\(to.rawValue)")
    #expect(try await larder("convert", sample.file.path, "--to", target, "--dry-run").code == 0)
    #expect(!FileManager.default.fileExists(atPath: target))
    #expect(try await larder("convert", sample.file.path, "--to", target).code == 0)
    try expectSame(target, sample)
    #expect(try StoreReading(path: target).report.commit.number == sample.commit)
    #expect(try sample.bytes() == before)
    let written = try Data(contentsOf: URL(filePath: target))
    #expect(try await larder("convert", sample.file.path, "--to", target).code == 2)
    #expect(try Data(contentsOf: URL(filePath: target)) == written)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).filter { $0.hasPrefix("new") } == ["new.\(to.rawValue)"]
    )
  }

  @Test(arguments: StoreKind.allCases) func `a backup is restored over a later store, which is kept`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let sample = try sample(kind, workspace)
    let (store, backup) = (sample.file.path, workspace.path("backup.\(kind.rawValue)"))
    #expect(try await larder("backup", store, "--to", backup).code == 0)
    try expectSame(backup, sample)
    let id = try StoreReading(path: store).report.storeID
    #expect(try StoreReading(path: backup).report.storeID == id)

    let old = try sample.bytes()
    #expect(try await larder("restore", backup, "--to", store).code == 2)
    #expect(try await larder("restore", store, "--to", store, "--replace").errors.contains("the same file twice"))
    #expect(try await larder("restore", backup, "--to", store, "--replace", "--dry-run").code == 0)
    #expect(try sample.bytes() == old)
    let run = try await larder("restore", backup, "--to", store, "--replace")
    #expect(run.code == 0, "\(run)")
    try expectSame(store, sample)
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path)
    let aside = try #require(names.filter { $0.contains("-replaced-") }.min { $0.count < $1.count })
    #expect(try Data(contentsOf: workspace.url(aside)) == Data(try #require(old[""])))
    try expectSame(workspace.path(aside), sample)
    #expect(try await larder("verify", store, workspace.path(aside)).code == 0)
  }

  @Test(arguments: StoreKind.allCases) func `a store that an app has open is not replaced or repaired`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let sample = try sample(kind, workspace, isClosed: true)
    let backup = workspace.path("backup.\(kind.rawValue)")
    #expect(try await larder("backup", sample.file.path, "--to", backup).code == 0)
    let app = try await Store.open(sample.file.backend)
    for isLockFileThere in [true, false] {
      if !isLockFileThere { try FileManager.default.removeItem(atPath: sample.file.path + "-lock") }
      for arguments in [
        ["restore", backup, "--to", sample.file.path, "--replace"], ["repair", sample.file.path, "--to", workspace.path("r.json")],
      ] {
        let run = try await larder(arguments)
        #expect(run.code == 2)
        #expect(run.errors.contains("locked"), "\(run.errors)")
      }
    }
    #expect(try await larder("backup", sample.file.path, "--to", workspace.path("second.\(kind.rawValue)")).code == 0)
    try await app.close()
    try expectSame(sample.file.path, sample)
  }

  @Test(arguments: StoreKind.allCases, StoreKind.allCases) func `a store without records is copied with its commit and horizon`(
    from: StoreKind, to: StoreKind
  ) async throws {
    let workspace = try Workspace()
    let store = try await workspace.emptiedStore(from)
    for command in ["convert", "repair", "backup"] where command != "backup" || from == to {
      let target = workspace.path("\(command).\(to.rawValue)")
      let run = try await larder(command, store, "--to", target)
      #expect(run.code == 0, "\(run)")
      let reading = try StoreReading(path: target)
      #expect(reading.records.isEmpty && reading.report.commit.number == 2 && reading.report.tombstoneHorizon.number == 2)
      #expect(try await larder("verify", target).code == 0)
    }
  }

  @Test func `the answers count one record as one`() async throws {
    let workspace = try Workspace()
    let dump = [
      #"{"dump":"larder","dumpVersion":1,"commit":2,"lines":2,"storeID":"X","tombstones":true,"tombstonesSince":0}"#,
      #"{"collection":"spots","key":"a","revision":1,"value":1,"version":1}"#,
      #"{"collection":"spots","deleted":true,"key":"b","revision":2,"version":1}"#,
    ]
    try Data((dump.joined(separator: "\n") + "\n").utf8).write(to: workspace.url("dump"))
    let (store, backup) = (workspace.path("new.json"), workspace.path("backup.json"))
    #expect(try await larder("load", workspace.path("dump"), "--to", store).code == 0)
    for arguments in [
      ["convert", store, "--to", workspace.path("new.sqlite")], ["backup", store, "--to", backup],
      ["restore", backup, "--to", workspace.path("restored.json")], ["repair", store, "--to", workspace.path("repaired.json")],
    ] {
      let run = try await larder(arguments)
      #expect(run.code == 0 && run.output.contains(": 1 record and 1 tombstone at commit 2"), "\(run)")
    }
  }

  // MARK: Interruptions

  @Test(arguments: StoreKind.allCases, Interruption.allCases)
  func `a conversion that is killed leaves nothing under the name, and is repeated`(kind: StoreKind, end: Interruption) async throws {
    let workspace = try Workspace()
    let sample = try sample(kind, workspace)
    let before = try sample.bytes()
    let target = workspace.path("new.\(kind == .jsonFile ? "sqlite" : "json")")
    _ = try await end.run(["convert", sample.file.path, "--to", target])
    if FileManager.default.fileExists(atPath: target) {
      try expectSame(target, sample)
    } else {
      #expect(try await larder("convert", sample.file.path, "--to", target).code == 0)
      try expectSame(target, sample)
    }
    #expect(try sample.bytes() == before)
  }

  @Test(arguments: StoreKind.allCases, Interruption.allCases)
  func `a restoration that is killed loses no store, and is repeated`(kind: StoreKind, end: Interruption) async throws {
    let workspace = try Workspace()
    let sample = try sample(kind, workspace)
    var random = SeededGenerator(seed: 5)
    let backup = try SampleStore(kind, in: workspace, named: "backup", commits: 30, isClosed: true, &random)
    let old = try sample.bytes()
    _ = try await end.run(["restore", backup.file.path, "--to", sample.file.path, "--replace"])
    // There is always a main file, and it is the old one or the new one.
    #expect(FileManager.default.fileExists(atPath: sample.file.path))
    let now = try sample.bytes()
    if now[""] == old[""] { #expect(now == old) }
    #expect(try await larder("restore", backup.file.path, "--to", sample.file.path, "--replace").code == 0)
    try expectSame(sample.file.path, backup)
    // Everything of the old store is kept under another name.
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).filter { $0.contains("-replaced-") }
    let kept = try names.map { [UInt8](try Data(contentsOf: workspace.url($0))) }
    for bytes in old.values { #expect(kept.contains(bytes)) }
  }

  @Test(arguments: StoreKind.allCases) func `a full disk is refused, and leaves no store`(kind: StoreKind) async throws {
    guard let disk = try await SmallDisk() else {
      print("a full disk is refused: skipped, since no small disk can be mounted here")
      return
    }
    let workspace = try Workspace()
    let sample = try sample(kind, workspace, commits: 4_000)
    let target = disk.path + "/new.\(kind.rawValue)"
    try Data(count: 960 << 10).write(to: URL(filePath: disk.path + "/filling"))
    let run = try await larder("convert", sample.file.path, "--to", target)
    #expect(run.code == 2)
    #expect(run.errors.contains("full"), "\(run.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == ["filling"])
    try FileManager.default.removeItem(atPath: disk.path + "/filling")
    #expect(try await larder("convert", sample.file.path, "--to", target).code == 0)
    try expectSame(target, sample)
    try await disk.remove()
  }
}
