import Foundation
import Synchronization

/// The entries that a browser has logged.
struct BrowserLogs: Sendable {
  /// A line of the console, or what the browser has to say about the page.
  struct Line: Sendable, CustomStringConvertible {
    /// One of `SEVERE`, `WARNING`, `INFO`, `DEBUG`.
    var level: String
    /// The subject, for example `console-api`, `network`, `javascript`, `security`.
    var source: String
    var text: String

    var description: String { "\(level) \(source): \(text)" }
  }

  var console: [Line] = []
  var urls: [String] = []
}

extension Browser {
  /// Returns all lines of the console since the browser's start.
  func console() async throws -> [BrowserLogs.Line] {
    let entries = try await post("se/log", ["type": "browser"]).array
    let lines = entries.map { entry in
      BrowserLogs.Line(level: entry["level"].text ?? "", source: entry["source"].text ?? "", text: entry["message"].text ?? "")
    }
    return logs.withLock { logs in
      logs.console += lines
      return logs.console
    }
  }

  /// Returns the URL of every request of the pages since the browser's start, also of those that failed, and of WebSockets.
  ///
  /// Workers are not among them, nor what a window that a page has opened asks before commands go to it; ``quitAndHosts()`` has all.
  func requestedURLs() async throws -> [String] {
    var urls: [String] = []
    for entry in try await post("se/log", ["type": "performance"]).array {
      let message = try JSON(Data((entry["message"].text ?? "null").utf8))["message"]
      switch message["method"].text {
      case "Network.requestWillBeSent": if let url = message["params"]["request"]["url"].text { urls.append(url) }
      case "Network.webSocketCreated": if let url = message["params"]["url"].text { urls.append(url) }
      default: continue
      }
    }
    return logs.withLock { logs in
      logs.urls += urls
      return logs.urls
    }
  }

  /// Returns the hosts, with their ports, that pages have asked since the browser's start.
  func requestedHosts() async throws -> Set<String> {
    hosts(of: try await requestedURLs())
  }

  /// Ends the browser, and returns the hosts, with their ports, that pages, windows and workers of every kind have asked.
  ///
  /// Requests that Chromium makes of its own accord are not among them, nor what ``open(_:)`` has asked and nothing in the page.
  func quitAndHosts() async throws -> Set<String> {
    try await quit()
    let written = try await Repetition.within(.seconds(10)) {
      let text = try String(contentsOfFile: requestLog, encoding: .utf8)
      return text.suffix(8).contains("}]\n}") ? text : nil
    }
    guard let text = written else { throw WebDriverFailure(code: .awaited, message: "the end of the log of requests") }
    // One event stands on each line.
    let events = text.split(separator: "\n").filter { $0.contains(#""initiator":"http"#) }.map {
      $0.prefix(through: $0.lastIndex(of: "}") ?? $0.startIndex)
    }
    return hosts(of: try events.compactMap { try JSON(Data($0.utf8))["params"]["url"].text })
  }

  private func hosts(of urls: [String]) -> Set<String> {
    let web = urls.compactMap { URLComponents(string: $0) }.filter { ["http", "https", "ws", "wss"].contains($0.scheme) }
    return Set(web.compactMap { url in url.host.map { host in url.port.map { "\(host):\($0)" } ?? host } })
  }
}
