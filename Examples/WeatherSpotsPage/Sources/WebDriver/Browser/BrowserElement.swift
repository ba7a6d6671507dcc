/// An element of a page.
struct BrowserElement: Sendable {
  let browser: Browser
  let id: String

  /// The element as an argument of a script.
  var json: JSON { [Browser.elementKey: .string(id)] }

  init(_ browser: Browser, id: String) { (self.browser, self.id) = (browser, id) }

  /// Takes an element out of what a script has returned, or a command.
  init(_ browser: Browser, _ json: JSON) throws {
    guard let id = json[Browser.elementKey].text else {
      throw WebDriverFailure(code: .noSuchElement, message: "\(json) is not an element")
    }
    self.init(browser, id: id)
  }

  func element(_ css: String) async throws -> BrowserElement { try BrowserElement(browser, try await post("element", find(css))) }

  func elements(_ css: String) async throws -> [BrowserElement] {
    try await post("elements", find(css)).array.map { try BrowserElement(browser, $0) }
  }

  /// Returns the text that the element displays.
  func text() async throws -> String { try await get("text").text ?? "" }

  func attribute(_ name: String) async throws -> String? {
    try await browser.script("return arguments[0].getAttribute(arguments[1])", json, .string(name)).text
  }

  func property(_ name: String) async throws -> JSON { try await get("property/\(name)") }

  func value() async throws -> String { try await property("value").text ?? "" }

  /// Returns the computed value of a property of CSS.
  func css(_ name: String) async throws -> String { try await get("css/\(name)").text ?? "" }

  /// Returns the role that assistive technology is told.
  func role() async throws -> String { try await get("computedrole").text ?? "" }

  /// Returns the name that assistive technology is told.
  func name() async throws -> String { try await get("computedlabel").text ?? "" }

  func isDisplayed() async throws -> Bool { try await get("displayed").boolean ?? false }

  func isEnabled() async throws -> Bool { try await get("enabled").boolean ?? false }

  /// Returns whether a checkbox, a radio button or an option is.
  func isSelected() async throws -> Bool { try await get("selected").boolean ?? false }

  /// Returns where the element is in the page.
  func rect() async throws -> Browser.Rect { Browser.Rect(try await get("rect")) }

  /// Scrolls to the element, and clicks its middle.
  func click() async throws { _ = try await post("click") }

  func clear() async throws { _ = try await post("clear") }

  /// Focuses the element, and types text.
  func type(_ text: String) async throws { _ = try await post("value", ["text": .string(text)]) }

  private func find(_ css: String) -> JSON { ["using": "css selector", "value": .string(css)] }
  private func get(_ path: String) async throws -> JSON { try await browser.get("element/\(id)/\(path)") }
  private func post(_ path: String, _ body: JSON = [:]) async throws -> JSON { try await browser.post("element/\(id)/\(path)", body) }
}
