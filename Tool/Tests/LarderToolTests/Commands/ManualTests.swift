import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The manual and the completions against the built tool.
@Suite(.timeLimit(.minutes(15))) struct ManualTests {
  private static let kept = URL(filePath: #filePath).appending(path: "../../../../Manual").standardizedFileURL

  private func pages(in folder: URL) throws -> [String: String] {
    var pages: [String: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".1") {
      pages[name] = String(decoding: try Data(contentsOf: folder.appending(path: name)), as: UTF8.self)
    }
    return pages
  }

  @Test func `the pages that are kept say what the tool says`() async throws {
    let workspace = try Workspace()
    let dump = try await larder("--experimental-dump-help").output
    let program = buildDirectory.appending(path: "manual-pages").path
    let run = try await Subprocess.run(
      .path(FilePath(program)), arguments: [workspace.directory.path], input: .string(dump), output: .string(limit: 1 << 16),
      error: .string(limit: 1 << 16))
    #expect(run.terminationStatus == .exited(0), "\(run.standardError)")
    let (made, kept) = (try pages(in: workspace.directory), try pages(in: Self.kept))
    #expect(made.keys.sorted() == kept.keys.sorted(), "run Scripts/manual.sh")
    for (name, page) in made { #expect(kept[name] == page, "\(name): run Scripts/manual.sh") }
  }

  @Test func `every command and option has words, and every command names its exit codes`() async throws {
    let pages = try pages(in: Self.kept)
    #expect(pages.count >= 8)
    for (name, page) in pages {
      #expect(page.contains("Exit codes: 0"), "\(name)")
      #expect(!page.contains(".TP\n.TP") && !page.contains("\n\n"), "\(name): an option without words")
    }
  }

  @Test func `bash understands the completions`() async throws {
    for shell in ["bash", "zsh", "fish"] {
      let run = try await larder("--generate-completion-script", shell)
      #expect(run.code == 0 && run.output.contains("larder"))
      guard shell == "bash" else { continue }
      let check = try await Subprocess.run(
        .name("bash"), arguments: ["-n"], input: .string(run.output), output: .string(limit: 1 << 16), error: .string(limit: 1 << 16))
      #expect(check.terminationStatus == .exited(0) && check.standardError.isEmpty)
    }
  }
}
