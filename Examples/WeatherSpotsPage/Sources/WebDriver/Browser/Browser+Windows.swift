extension Browser {
  /// A window or tab, by the handle that WebDriver gives it.
  struct Window: Hashable, Sendable {
    let handle: String
  }

  /// Kinds of new windows.
  enum WindowKind: String { case tab, window }

  /// Returns the window that commands go to.
  func window() async throws -> Window { Window(handle: try await get("window").text ?? "") }

  /// Returns all windows and tabs, in no order.
  func windows() async throws -> [Window] { try await get("window/handles").array.compactMap { $0.text.map(Window.init) } }

  /// Opens an empty window or tab, which commands go to from now on.
  func newWindow(_ kind: WindowKind = .tab) async throws -> Window {
    let window = Window(handle: try await post("window/new", ["type": .string(kind.rawValue)])["handle"].text ?? "")
    try await switchTo(window)
    return window
  }

  /// Makes commands go to a window.
  func switchTo(_ window: Window) async throws { _ = try await post("window", ["handle": .string(window.handle)]) }

  /// Closes the window that commands go to, and makes them go to another.
  func closeWindow(thenSwitchTo next: Window) async throws {
    _ = try await connection.delete("\(session)/window")
    try await switchTo(next)
  }

  /// Returns where the window is, with its frame.
  func windowRect() async throws -> Rect { Rect(try await get("window/rect")) }

  /// Puts the window somewhere, and returns where it is now.
  func setWindowRect(_ rect: Rect) async throws -> Rect {
    let wanted: JSON = ["x": .number(rect.x), "y": .number(rect.y), "width": .number(rect.width), "height": .number(rect.height)]
    return Rect(try await post("window/rect", wanted))
  }

  /// Returns the text of the open `alert`, `confirm` or `prompt`.
  func dialogText() async throws -> String { try await get("alert/text").text ?? "" }

  /// Answers the open dialog with OK, or with Cancel.
  func answerDialog(_ isAccepted: Bool) async throws { _ = try await post(isAccepted ? "alert/accept" : "alert/dismiss") }
}

extension Browser {
  /// A place and a size in pixels of CSS.
  struct Rect: Equatable, Sendable {
    var x: Double
    var y: Double
    var width: Double
    var height: Double
  }
}

extension Browser.Rect {
  init(_ json: JSON) {
    self.init(x: json["x"].number ?? 0, y: json["y"].number ?? 0, width: json["width"].number ?? 0, height: json["height"].number ?? 0)
  }
}
