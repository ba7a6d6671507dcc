import Foundation
import StandInServer
import Testing
import WeatherSpotsKit

@testable import WebDriver

/// The program as people run it: a store of the shipped spots, recorded weather, `serve` in a process of its own, and other commands beside it.
final class ServedPage {
  private let directory: URL
  private var server: ServerProcess?
  private let port: Int
  #if os(Linux)
    // Held also while the server is away, when another test's might be given it; macOS lets no server listen beside this.
    private let held: SilentPort
  #endif

  var base: String { "http://127.0.0.1:\(port)" }
  var store: String { directory.appending(path: "spots.sqlite").path }

  private init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-page-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let free = try SilentPort()
    port = free.port
    #if os(Linux)
      held = free
    #endif
  }

  /// Serves the page, opens it in a browser, and ends both afterwards in any case.
  ///
  /// Expects that the console has no error, and that no other host was asked.
  static func running(
    _ options: BrowserOptions = BrowserOptions(), opening path: String = "/", _ test: (ServedPage, Browser) async throws -> Void
  ) async throws {
    let page = try ServedPage()
    let result: Result<Void, any Error>
    do {
      try page.command("import", Self.shippedSpots)
      try await page.start()
      try await Browser.running(options, onFailure: { Attachment.record([UInt8]($0), named: "page.png") }) { browser in
        try await browser.open(page.base + path)
        try await page.waitForSpots(browser)
        try await test(page, browser)
        try await page.expectNoErrors(browser)
        #expect(try await browser.quitAndHosts() == ["127.0.0.1:\(page.port)"])
      }
      result = .success(())
    } catch { result = .failure(error) }
    page.server?.kill()
    try FileManager.default.removeItem(at: page.directory)
    try result.get()
  }

  /// Starts the server, at the port that is its own.
  func start() async throws {
    let server = try ServerProcess(PageProgram.file, ["serve", "--store", store, "--provider", "recorded", "--port", "\(port)"])
    self.server = server
    let line = try await server.firstLine()
    try #require(line.contains("http://127.0.0.1:\(port)/"), "\(line)")
  }

  /// Kills the server, as by `kill -9`.
  func kill() {
    server?.kill()
    server = nil
  }

  /// Runs another command on the same store, and returns what it writes.
  @discardableResult
  func command(_ arguments: String...) throws -> String {
    let (process, output) = (Process(), Pipe())
    process.executableURL = PageProgram.file
    process.arguments = arguments + ["--store", store]
    process.environment = ProcessInfo.processInfo.environment.merging(["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]) { $1 }
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(arguments): \(text)")
    return text
  }

  /// Holds the page's writes until they are let go.
  func delayWrites(_ browser: Browser) async throws {
    _ = try await browser.script(
      """
      const real = window.realFetch ??= window.fetch;
      window.held = new Promise((resolve) => { window.letGo = resolve; });
      window.fetch = async (address, options) => {
        if (['PUT', 'DELETE'].includes(options?.method)) await window.held;
        return real(address, options);
      };
      """)
  }

  /// Lets the page's writes reach the server, and loses the answers.
  func loseAnswers(_ browser: Browser) async throws {
    _ = try await browser.script(
      """
      const real = window.realFetch ??= window.fetch;
      window.fetch = async (address, options) => {
        const answer = await real(address, options);
        if (options?.method === 'PUT') throw new TypeError('lost');
        return answer;
      };
      """)
  }

  /// Lets writes and their answers pass.
  func letWritesGo(_ browser: Browser) async throws {
    _ = try await browser.script("window.fetch = window.realFetch; window.letGo?.();")
  }

  func waitForSpots(_ browser: Browser) async throws {
    try await browser.wait(for: "100 spots") { try await browser.elements("#list li").count == 100 }
  }

  /// Expects that neither the page nor the browser has found fault; requests to a server that is away are told by the browser itself.
  func expectNoErrors(_ browser: Browser) async throws {
    for line in try await browser.console() where line.level == "SEVERE" || line.level == "WARNING" {
      let away = ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"]
      let isAway = line.source == "network" && away.contains { line.text.contains("net::\($0)") }
      // A lost race, a spot that is gone, and values that cannot be, are answers.
      let answers = ["412", "404", "422"].map { "the server responded with a status of \($0)" }
      let isAnswer = line.source == "network" && line.text.contains("/api/spots/") && answers.contains { line.text.contains($0) }
      if isAway || isAnswer { continue }
      Issue.record("\(line)")
    }
  }

  /// Writes a picture of the page where `LARDER_PICTURES` says, to be looked at.
  func keepPicture(_ name: String, _ browser: Browser) async throws {
    let picture = try await browser.screenshot()
    Attachment.record([UInt8](picture), named: "\(name).png")
    guard let folder = ProcessInfo.processInfo.environment["LARDER_PICTURES"] else { return }
    try picture.write(to: URL(filePath: folder).appending(path: "\(name).png"))  // a picture that is looked at once
  }

  private static let shippedSpots = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "../../../../WeatherSpots/spots.csv"
  )
  .standardizedFileURL.path
}
