import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The examples of the guide, run as they stand there, on the first stores of WeatherSpots.
@Suite(.timeLimit(.minutes(15))) struct GuideTests {
  private static let guide = URL(filePath: #filePath).appending(path: "../../../../../Docs/Larder.docc/Tool.md").standardizedFileURL

  @Test func `every example says what the tool says`() async throws {
    let workspace = try Workspace()
    for fixture in Fixtures.mainFiles where fixture.path.contains("first-version") { _ = try Fixtures.copy(fixture, to: workspace) }
    var damaged = try Data(contentsOf: workspace.url("spots.sqlite"))
    damaged[try #require(damaged.range(of: Data(#""Brest""#.utf8))).lowerBound + 2] ^= 1
    try damaged.write(to: workspace.url("damaged.sqlite"))

    let text = String(decoding: try Data(contentsOf: Self.guide), as: UTF8.self)
    let examples = text.matches(of: /```console\n\$ ([^\n]+)\n(.*?)```/.dotMatchesNewlines())
    #expect(examples.count >= 6)
    for example in examples {
      let result = try await Subprocess.run(
        .name("sh"), arguments: ["-c", "exec 2>&1; PATH=\(buildDirectory.path):$PATH; \(example.1)"],
        workingDirectory: FilePath(workspace.directory.path), output: .string(limit: 1 << 20), error: .discarded)
      let output = result.standardOutput.replacing(workspace.directory.path, with: "/data")
      #expect(output == String(example.2), "\(example.1)")
    }
  }
}
