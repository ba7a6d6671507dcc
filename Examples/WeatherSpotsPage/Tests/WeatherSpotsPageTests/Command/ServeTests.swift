import Foundation
import Subprocess
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The page as a command: its address, its end, and what it refuses.
@Suite(.timeLimit(.minutes(15))) struct ServeTests {
  private let workspace = Workspace()

  private func page(_ arguments: [String]) async throws -> Run { try await run("weather-spots-page", arguments) }

  /// Returns what a server answers at its address.
  private func status(of url: URL) async throws -> Int? {
    let (_, response) = try await URLSession(configuration: .ephemeral).data(from: url)
    return (response as? HTTPURLResponse)?.statusCode
  }

  @Test(arguments: [Signal.interrupt, .terminate]) func itServesUntilASignal(_ signal: Signal) async throws {
    let store = workspace.path("spots.sqlite")
    let result = try await Subprocess.run(
      .built("weather-spots-page"), arguments: ["serve", "--port", "0", "--provider", "recorded", "--store", store], input: .none,
      output: .sequence, error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      let line = try #require(try await lines.next())
      let match = try #require(line.wholeMatch(of: /Open (http:\/\/127\.0\.0\.1:\d+\/)/))
      let url = try #require(URL(string: String(match.1)))
      #expect(try await status(of: url) == 200)
      #expect(try await status(of: url.appending(path: "api/spots")) == 200)
      // Another command uses the store meanwhile.
      #expect(try await page(["add", "New", "1", "2", "--zone", "GMT", "--store", store]).code == 0)
      let port = try #require(url.port)
      let second = try await page(["serve", "--port", "\(port)", "--store", store])
      #expect(second == .failure("the port \(port) is in use; choose another one with --port", 1))
      try execution.send(signal: signal)
      #expect(try await lines.next() == nil)
    }
    #expect(result.terminationStatus == .exited(0))
    #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path) == ["spots.sqlite"])
  }

  @Test func othersGetATokenThatIsAnotherOneEachTime() async throws {
    var tokens: Set<String> = []
    let options = ["--host", "0.0.0.0", "--port", "0", "--json", "--provider", "recorded", "--store", workspace.path("a.sqlite")]
    for _ in 0..<2 {
      _ = try await Subprocess.run(
        .built("weather-spots-page"), arguments: Arguments(["serve"] + options), input: .none, output: .sequence, error: .discarded
      ) { execution in
        var lines = execution.standardOutput.strings().makeAsyncIterator()
        let line = try #require(try await lines.next())
        let match = try #require(line.wholeMatch(of: /\{"url":"http:\/\/localhost:(\d+)\/\?token=([A-Za-z0-9_-]{43})"\}/))
        let url = try #require(URL(string: "http://127.0.0.1:\(match.1)/api/spots"))
        #expect(try await status(of: url) == 401)
        tokens.insert(String(match.2))
        try execution.send(signal: .terminate)
      }
    }
    #expect(tokens.count == 2)
  }

  @Test func mistakesAreUsage() async throws {
    let mistakes = [
      ["--refresh"], ["--policy", "network-only"], ["--port", "70000"], ["--port", "x"], ["--max-streams", "0"], ["--host", ""],
    ]
    for arguments in mistakes {
      #expect(try await page(["serve"] + arguments + ["--store", workspace.path("a.sqlite")]).code == 64)
    }
    #expect(try await page(["serve", "--port", "0", "--store", workspace.path("none/a.txt")]).code == 64)
  }

  @Test func theHelpOfTheProgramHasServeAndAllOtherCommands() async throws {
    let help = try await page(["--help"])
    #expect(help.code == 0)
    for command in ["serve", "import", "forecast", "sync"] { #expect(help.output.contains("\n  \(command) ")) }
    #expect(try await page(["serve", "--help"]).output.contains("--max-streams"))
  }
}
