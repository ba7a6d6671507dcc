import Foundation
import LarderToolKit
import Testing

/// Names of files that would steer a terminal.
@Suite(.timeLimit(.minutes(15))) struct TerminalControlTests {
  @Test func `the name of a file steers no terminal`() async throws {
    let workspace = try Workspace()
    let folder = workspace.path("esc\u{1B}[31m\u{9B}5m\u{202E}")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let store = folder + "/s.sqlite"
    try FileManager.default.copyItem(atPath: try await workspace.store(.sqliteFile), toPath: store)
    try Data(repeating: 7, count: 5_000).write(to: URL(filePath: folder + "/damaged.sqlite"))
    for arguments in [
      ["verify", store], ["verify", store, "--json"], ["verify", folder + "/damaged.sqlite"], ["verify", folder + "/none"],
      ["inspect", store], ["inspect", store, "--json"], ["get", folder + "/none", "spots", "brest"],
      ["get", folder + "/none", "spots", "brest", "--json"], ["backup", store, "--to", folder + "/b.sqlite"],
      ["backup", store, "--to", folder + "/b.sqlite"], ["diff", store, folder + "/b.sqlite", "e\u{1B}[31m"],
      ["restore", folder + "/b.sqlite", "--to", store, "--replace"], ["repair", store, "--to", folder + "/r.sqlite"],
      // What the parser of the arguments repeats.
      ["ver\u{1B}[31mify"], ["verify", store, "--e\u{1B}[31m"], ["verify", store, "\u{9B}5m"],
      ["query", store, "x", "--limit", "\u{202E}1"],
    ] {
      let run = try await larder(arguments)
      let text = run.output + run.errors
      #expect(!text.isEmpty)
      let controls = text.unicodeScalars.filter { $0 != "\n" && ($0.value < 0x20 || 0x7F...0x9F ~= $0.value || $0.value == 0x202E) }
      #expect(controls.isEmpty, "\(arguments): \(run)")
    }
    // Of JSON the text means what it did.
    let json = try await larder("verify", store, "--json").output
    let body = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    #expect(body["store"] as? String == store)
  }

  @Test func `a value that is not shown on a terminal is written as it is`() async throws {
    let workspace = try Workspace()
    let value = "{\"id\":\"a\",\"text\":\"\u{9B}\u{2028}\u{202E}\"}"
    try Data("[\(value)]".utf8).write(to: workspace.url("source"))
    let store = workspace.path("new.json")
    #expect(try await larder("import", "array", workspace.path("source"), "--to", store, "--collection", "x", "--id", "id").code == 0)
    #expect(try await larder("get", store, "x", "a") == Run(output: value + "\n"))
  }

  @Test func `a value steers no terminal, whichever command shows it`() async throws {
    let workspace = try Workspace()
    // JSON allows these within a text, and a store keeps them as they came: CSI, DEL, a line separator, a change of direction.
    let value = "{\"id\":\"a\",\"text\":\"\u{9B}5m\u{7F}\u{2028}\u{202E}\"}"
    try Data("[\(value)]".utf8).write(to: workspace.url("source"))
    let store = workspace.path("new.json")
    #expect(try await larder("import", "array", workspace.path("source"), "--to", store, "--collection", "x", "--id", "id").code == 0)
    let escaped = #"{"id":"a","text":"\u009b5m\u007f\u2028\u202e"}"#
    for (arguments, expected) in [
      (["get", store, "x", "a", "--raw"], escaped), (["dump", store], "\"value\":\(escaped),"), (["dump", store, "--json"], escaped),
      (["get", store, "x", "a", "--raw", "--json"], escaped), (["get", store, "x", "a"], "5m"), (["query", store, "x"], "5m"),
      (["query", store, "x", "--array"], escaped),
    ] {
      let run = try await Terminal().run(arguments, showing: .output)
      #expect(run.code == 0 && run.output.contains(expected), "\(arguments): \(run)")
      let controls = run.output.unicodeScalars.filter {
        $0 != "\n" && $0 != "\r" && ($0.value < 0x20 || [0x7F, 0x9B, 0x2028, 0x202E].contains($0.value))
      }
      #expect(controls.isEmpty, "\(arguments): \(run)")
    }
    // To a pipe, both write the bytes that the store holds.
    #expect(try await larder("get", store, "x", "a", "--raw") == Run(output: value + "\n"))
    #expect(try await larder("dump", store).output.contains("\"value\":\(value),"))
  }
}
