import Foundation
import Synchronization

/// A Chromium without a screen, driven by chromedriver.
final class Browser: Sendable {
  /// The name of an element's id in JSON, which WebDriver has fixed.
  static let elementKey = "element-6066-11e4-a52e-4f735466cecf"

  let connection: WebDriverConnection
  /// The path of the session, which all commands begin with.
  let session: String
  /// The lines that the browser has logged so far: chromedriver gives each entry once.
  let logs = Mutex<BrowserLogs>(BrowserLogs())

  /// The file of all requests, which the browser has written when it has ended.
  let requestLog: String
  private let hasQuit = Mutex(false)

  private init(_ connection: WebDriverConnection, _ session: String, requestLog: String) {
    (self.connection, self.session, self.requestLog) = (connection, session, requestLog)
  }

  /// Starts a browser with a profile of its own.
  static func start(_ driver: DriverProcess, _ options: BrowserOptions = BrowserOptions()) async throws -> Browser {
    let connection = WebDriverConnection(port: driver.port)
    let profile = "\(driver.directory)/profile-\(UUID().uuidString)"
    let answer = try await connection.post("session", options.capabilities(browser: driver.programs.browser, profile: profile))
    guard let id = answer["sessionId"].text else { throw WebDriverFailure(code: .start, message: "no session: \(answer)") }
    return Browser(connection, "session/\(id)", requestLog: "\(profile).requests")
  }

  /// Runs something with a browser of its own, and ends that with its chromedriver and all files afterwards in any case.
  ///
  /// - Parameter onFailure: Gets a picture of the page, as PNG, when something is thrown.
  static func running<Result>(
    _ options: BrowserOptions = BrowserOptions(), onFailure: (Data) -> Void = { _ in }, _ body: (Browser) async throws -> Result
  ) async throws -> Result {
    try await DriverProcess.running { driver in
      let browser = try await start(driver, options)
      let result: Result
      do { result = try await body(browser) } catch {
        // A page that has no picture is the lesser trouble.
        do { onFailure(try await browser.screenshot()) } catch let failure { print("no picture of the page: \(failure)") }
        throw error
      }
      try await browser.quit()
      return result
    }
  }

  /// Closes all windows and ends the browser, unless that has been done.
  func quit() async throws {
    let isFirst = hasQuit.withLock { hasQuit in
      defer { hasQuit = true }
      return !hasQuit
    }
    if isFirst { _ = try await connection.delete(session) }
  }

  func open(_ url: String) async throws { _ = try await post("url", ["url": .string(url)]) }

  func reload() async throws { _ = try await post("refresh") }

  func back() async throws { _ = try await post("back") }

  func title() async throws -> String { try await get("title").text ?? "" }

  func url() async throws -> String { try await get("url").text ?? "" }

  /// Returns the text that the page displays.
  func pageText() async throws -> String { try await script("return document.body?.innerText ?? ''").text ?? "" }

  /// Runs JavaScript, the body of a function with `arguments`, and returns what it returns; it waits for a promise.
  func script(_ body: String, _ arguments: JSON...) async throws -> JSON {
    try await post("execute/sync", ["script": .string(body), "args": .array(arguments)])
  }

  /// Returns a picture of the window, as PNG.
  func screenshot() async throws -> Data {
    guard let text = try await get("screenshot").text, let data = Data(base64Encoded: text) else {
      throw WebDriverFailure(code: .connection, message: "a screenshot that is not base64")
    }
    return data
  }

  /// Sends a command of the DevTools protocol.
  func devTools(_ command: String, _ parameters: JSON = [:]) async throws -> JSON {
    try await post("goog/cdp/execute", ["cmd": .string(command), "params": parameters])
  }

  func get(_ path: String) async throws -> JSON { try await connection.get("\(session)/\(path)") }

  func post(_ path: String, _ body: JSON = [:]) async throws -> JSON { try await connection.post("\(session)/\(path)", body) }
}
