import Foundation
import Testing

@testable import WebDriver

/// What a person does and sees on the page.
extension Browser {
  static let brest = "Brest @48.39029,-4.48628"

  /// Opens the page of a spot by a click on its row, and waits until its weather is there.
  func openSpot(_ name: String) async throws {
    let row = try await wait(for: "the row of \(name)") {
      for link in try await elements("#list a") where try await link.element("bdi").text() == name { return link }
      return nil
    }
    try await row.click()
    try await waitForWeather()
  }

  func waitForWeather() async throws {
    try await wait(within: .seconds(30), for: "the weather") { try await !elements("figure.chart-temperature svg").isEmpty }
  }

  /// Returns what the page says of a value of the spot.
  func fact(_ name: String) async throws -> String? {
    let script = """
      const term = [...document.querySelectorAll('#spot dt')].find((each) => each.textContent === arguments[0]);
      return term?.nextElementSibling.textContent ?? null;
      """
    return try await self.script(script, .string(name)).text
  }

  func waitForFact(_ name: String, _ value: String, within limit: Duration = .seconds(10)) async throws {
    try await wait(within: limit, for: "\(name) \(value)") { try await fact(name) == value }
  }

  func text(_ css: String) async throws -> String { try await element(css).text() }

  func waitForText(_ css: String, _ part: String, within limit: Duration = .seconds(20)) async throws {
    try await wait(within: limit, for: "\(part) in \(css)") { try await text(css).contains(part) }
  }

  /// Types into a field of the form, in the place of what is there.
  func fill(_ field: String, _ text: String) async throws {
    let element = try await waitForElement("#field-\(field)")
    try await element.clear()
    try await element.type(text)
  }

  /// Waits until the page would be shown without the server.
  func waitUntilKept() async throws {
    let script = """
      return Boolean(navigator.serviceWorker.controller && await caches.match('/') && await caches.match('/api/spots?limit=1000'));
      """
    try await wait(within: .seconds(30), for: "a page that is kept") {
      try await self.script("return (async () => { \(script) })()").boolean ?? false
    }
  }

  /// Returns whether the page is wider than the window.
  func scrollsSideways() async throws -> Bool {
    try await script("return document.documentElement.scrollWidth > document.documentElement.clientWidth").boolean ?? true
  }
}
