import Foundation
import LarderToolKit
import Testing

/// What is said of long work, on a terminal and elsewhere.
@Suite(.timeLimit(.minutes(15))) struct ProgressTests {
  /// Makes a store with so many zeros behind it that reading it is worth a word.
  private func largeStore(_ kind: StoreKind, _ workspace: Workspace) async throws -> String {
    let path = try await workspace.store(kind)
    let handle = try FileHandle(forWritingTo: URL(filePath: path))
    try handle.truncate(atOffset: 33 << 20)
    try handle.close()
    return path
  }

  /// The commands that read all of a store; a resealing reads it byte by byte, which takes long in a debug build.
  private func commands(_ store: String, _ workspace: Workspace, _ kind: StoreKind) -> [[String]] {
    let target = workspace.path("new.\(kind.rawValue)")
    let all: [[String]] = [
      ["verify", store], ["query", store, "spots"], ["diff", store, store], ["backup", store, "--to", target], ["history", store],
      ["restore", store, "--to", target], ["inspect", store], ["get", store, "spots", "brest"], ["dump", store],
      ["convert", store, "--to", workspace.path("other.\(kind.rawValue)")], ["repair", store, "--to", workspace.path("saved.json")],
    ]
    if Sampling.count(0, full: 1) == 0 { return Array(all.prefix(kind == .jsonFile ? 5 : 1)) }
    return all + (kind == .jsonFile ? [["reseal", store]] : [])
  }

  @Test(arguments: StoreKind.allCases) func longWorkIsNamedOnATerminalAndNowhereElse(_ kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await largeStore(kind, workspace)
    for arguments in commands(store, workspace, kind) {
      let shown = try await Terminal().run(arguments).errors
      let name = URL(filePath: store).lastPathComponent
      #expect(shown.contains(/^\r(reading|checking) \w+\.\w+, 33 MiB/) && shown.contains(name), "\(arguments[0]): \(shown)")
      // The line is gone before anything else is written.
      let last = shown.components(separatedBy: "\r\u{1B}[K").last ?? ""
      #expect(!last.contains("MiB"), "\(arguments[0]): \(shown)")
    }
    let elsewhere = try await larder(["verify", store]).errors
    #expect(!elsewhere.contains("\r") && !elsewhere.contains("MiB"), "\(elsewhere)")
  }

  @Test func shortWorkIsNotNamed() async throws {
    let workspace = try Workspace()
    let run = try await Terminal().run(["verify", try await workspace.store(.jsonFile)])
    #expect(run.code == 0 && run.errors.isEmpty, "\(run.errors)")
  }
}
