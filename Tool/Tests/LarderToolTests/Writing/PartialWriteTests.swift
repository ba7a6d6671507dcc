import Foundation
import Larder
import LarderToolKit
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Commands that fail after they have written.
@Suite(.timeLimit(.minutes(15))) struct PartialWriteTests {
  /// Writes an array of objects, and returns the arguments of its import.
  private func arguments(_ count: Int, to store: String, _ workspace: Workspace) throws -> [String] {
    let text = String(repeating: "x", count: 40)
    let objects = (0..<count).map { "{\"id\":\($0),\"text\":\"\(text)\"}" }
    try Data("[\(objects.joined(separator: ",\n"))]".utf8).write(to: workspace.url("source"))
    return ["import", "array", workspace.path("source"), "--to", store, "--collection", "notes", "--id", "id"]
  }

  @Test(arguments: StoreKind.allCases) func `an import that a full disk ends says how much is committed`(kind: StoreKind) async throws {
    guard let disk = try await SmallDisk(mebibytes: kind == .jsonFile ? 1 : 4) else {
      print("an import on a full disk: skipped, since no small disk can be mounted here")
      return
    }
    let workspace = try Workspace()
    let store = disk.path + "/spots.\(kind.rawValue)"
    let made = try await workspace.store(kind)
    try FileManager.default.copyItem(atPath: made, toPath: store)
    let arguments = try arguments(40_000, to: store, workspace)
    let run = try await larder(arguments)
    let committed = try StoreReading(path: store).records.count { $0.collection == "notes" }
    #expect(committed > 0 && committed < 40_000)
    #expect(run.code == 3, "\(run)")
    #expect(run.output.contains("\(committed) of 40000 changes are committed"), "\(run)")
    #expect(run.errors.contains("full"), "\(run)")
    let json = try await larder(arguments + ["--json"])
    #expect(json.code == 2 || json.code == 3 && json.output.contains(#""error":{"#), "\(json)")
    try await disk.remove()
  }

  @Test func `an answer that cannot be written is no refusal of what was done`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    let program = buildDirectory.appending(path: "larder").path
    func run(_ arguments: [String]) async throws -> TerminationStatus {
      try await Subprocess.run(
        .path("/bin/sh"), arguments: Arguments(["-c", "exec \"$@\" >&-", "sh", program] + arguments), output: .discarded, error: .discarded
      ).terminationStatus
    }
    let arguments = try arguments(3, to: store, workspace)
    #expect(try await run(arguments + ["--dry-run"]) == .exited(2))
    #expect(try await run(["verify", store]) == .exited(2))
    #expect(try await run(arguments) == .exited(3))
    #expect(try StoreReading(path: store).records.count { $0.collection == "notes" } == 3)
    #expect(try await run(["backup", store, "--to", workspace.path("b.json")]) == .exited(3))
    #expect(try await run(["convert", store, "--to", workspace.path("c.sqlite")]) == .exited(3))
    #expect(try await run(["restore", workspace.path("b.json"), "--to", workspace.path("r.json")]) == .exited(3))
    #expect(try await larder("diff", store, workspace.path("r.json")).code == 0)
  }
}
