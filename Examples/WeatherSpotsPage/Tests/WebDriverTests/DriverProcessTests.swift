import Foundation
import Testing

@testable import WebDriver

@Suite(.needsBrowser, .serialized)
struct DriverProcessTests {
  private struct Planned: Error {}

  /// Whether nothing of a chromedriver is left, other than entries of processes that have ended and that nobody has asked about.
  private func isGone(_ group: Int32, _ directory: String) throws -> Bool {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/bin/ps")
    process.arguments = ["-A", "-o", "pgid=", "-o", "stat=", "-o", "args="]
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let left = text.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 2) }
      .filter { !$0[1].hasPrefix("Z") && ($0[0] == "\(group)" || $0.last?.contains(directory) == true) }
    return left.isEmpty && !FileManager.default.fileExists(atPath: directory)
  }

  private func waitUntilGone(_ group: Int32, _ directory: String) async throws -> Bool {
    try await Repetition.within(.seconds(20)) { try isGone(group, directory) ? true : nil } ?? false
  }

  /// Returns a program in the place of chromedriver.
  private func standIn(_ script: String) throws -> URL {
    let program = FileManager.default.temporaryDirectory.appending(path: "driver-\(UUID().uuidString)")
    let text = Data("#!/bin/sh\n\(script)\n".utf8)
    try #require(FileManager.default.createFile(atPath: program.path, contents: text, attributes: [.posixPermissions: 0o700]))
    return program
  }

  @Test func anEndedDriverLeavesNoProcessAndNoFile() async throws {
    let driver = try await DriverProcess.start()
    _ = try await Browser.start(driver)
    #expect(try !isGone(driver.group, "/nonexistent"))
    #expect(try !isGone(0, driver.directory))
    try await driver.end()
    #expect(try isGone(driver.group, driver.directory))
    try await driver.end()
  }

  @Test func aFailedTestLeavesNothing() async throws {
    var left: (Int32, String)?
    await #expect(throws: Planned.self) {
      try await DriverProcess.running { driver in
        left = (driver.group, driver.directory)
        _ = try await Browser.start(driver)
        throw Planned()
      }
    }
    let (group, directory) = try #require(left)
    #expect(try isGone(group, directory))
  }

  @Test func aForgottenDriverEnds() async throws {
    func forget() async throws -> (Int32, String) {
      let driver = try await DriverProcess.start()
      _ = try await Browser.start(driver)
      return (driver.group, driver.directory)
    }
    let (group, directory) = try await forget()
    #expect(try await waitUntilGone(group, directory))
  }

  @Test func aKilledTestProcessLeavesNothing() async throws {
    let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
      let driver = try await DriverProcess.start()
      _ = try await Browser.start(driver)
      print("left: \(driver.group) \(driver.directory)")
      fflush(nil)
      kill(getpid(), SIGKILL)
    }
    let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
    let match = try #require(output.firstMatch(of: /left: (\d+) (\S+)/))
    let group = try #require(Int32(match.1))
    #expect(try await waitUntilGone(group, String(match.2)))
  }

  @Test func aDriverWhosePortIsTakenIsStartedAgain() async throws {
    let program = try standIn(
      """
      echo $HOME >>"$0.homes"
      [ $(wc -l <"$0.homes") -gt 2 ] || { echo "IPv4 port not available. Exiting..."; exit 1; }
      echo "ChromeDriver was started successfully on port 9."
      exec tail -f /dev/null
      """)
    let homes = program.appendingPathExtension("homes")
    defer { for file in [program, homes] { unlink(file.path) } }
    let driver = try await DriverProcess.start(BrowserAvailability(driver: program.path, browser: "/bin/false"))
    #expect(driver.port == 9)
    try await driver.end()
    let directories = try String(contentsOf: homes, encoding: .utf8).split(separator: "\n").map(String.init)
    #expect(Set(directories).count == 3)
    #expect(!directories.contains { FileManager.default.fileExists(atPath: $0) })
  }

  @Test func aDriverThatDoesNotStartIsReported() async throws {
    let program = try standIn("echo I am in $HOME with $1")
    defer { unlink(program.path) }
    let failure = await #expect(throws: WebDriverFailure.self) {
      try await DriverProcess.start(BrowserAvailability(driver: program.path, browser: "/bin/false"))
    }
    #expect(failure?.code == .start)
    let match = try #require(failure?.message.firstMatch(of: /I am in (\S+) with --port=0/))
    #expect(!FileManager.default.fileExists(atPath: String(match.1)))
  }
}
