extension Browser {
  /// The elements that can have a role without being told, by the role.
  private static let candidates = [
    "button": "button, summary, input:is([type=button], [type=submit], [type=reset], [type=image])",
    "link": "a[href], area[href]", "heading": "h1, h2, h3, h4, h5, h6", "textbox": "input, textarea, [contenteditable]",
    "searchbox": "input", "checkbox": "input[type=checkbox]", "radio": "input[type=radio]", "slider": "input[type=range]",
    "spinbutton": "input[type=number]", "switch": "input", "combobox": "select, input[list]", "listbox": "select",
    "option": "option", "list": "ul, ol, menu", "listitem": "li", "image": "img, svg", "img": "img, svg", "dialog": "dialog",
    "navigation": "nav", "main": "main", "banner": "header", "contentinfo": "footer", "region": "section", "form": "form",
    "status": "output", "alert": "[role=alert]", "table": "table", "row": "tr", "cell": "td", "columnheader": "th", "rowheader": "th",
    "group": "fieldset, details, optgroup", "progressbar": "progress", "article": "article", "complementary": "aside",
  ]

  /// Returns the first element that a selector matches.
  ///
  /// - Throws: `no such element`.
  func element(_ css: String) async throws -> BrowserElement {
    try BrowserElement(self, try await post("element", ["using": "css selector", "value": .string(css)]))
  }

  func elements(_ css: String) async throws -> [BrowserElement] {
    try await post("elements", ["using": "css selector", "value": .string(css)]).array.map { try BrowserElement(self, $0) }
  }

  /// Returns the elements with a role and, where one is given, exactly that accessible name, as the browser computes both.
  ///
  /// - Parameter css: Where to look; the elements that have the role by themselves or by an attribute, when absent.
  func elements(role: String, named name: String? = nil, among css: String? = nil) async throws -> [BrowserElement] {
    let places = css ?? Self.candidates[role].map { "\($0), [role~='\(role)']" } ?? "*"
    // Chromium and the standard have two words for a picture.
    let roles = ["img", "image"].contains(role) ? ["img", "image"] : [role]
    var found: [BrowserElement] = []
    for element in try await elements(places) {
      guard roles.contains(try await element.role()) else { continue }
      if let name, try await element.name() != name { continue }
      found.append(element)
    }
    return found
  }

  /// Returns the only element with a role and an accessible name.
  ///
  /// - Throws: `no such element`, also when there are several.
  func element(role: String, named name: String, among css: String? = nil) async throws -> BrowserElement {
    let found = try await elements(role: role, named: name, among: css)
    guard found.count == 1, let element = found.first else {
      throw WebDriverFailure(code: .noSuchElement, message: "\(found.count) elements with role \(role) and name \"\(name)\"")
    }
    return element
  }

  /// Returns the element that keys go to: the body when there is no other.
  func activeElement() async throws -> BrowserElement { try BrowserElement(self, try await get("element/active")) }
}
