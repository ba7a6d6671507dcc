/// An error of a browser under test: what chromedriver answered, or why it did not.
struct WebDriverFailure: Error, CustomStringConvertible {
  /// A kind of error, by the code that WebDriver gives it, or by one of this client.
  struct Code: Equatable, Sendable, ExpressibleByStringLiteral {
    let text: String

    init(_ text: String) { self.text = text }
    init(stringLiteral text: String) { self.text = text }

    static let noSuchElement: Code = "no such element"
    static let staleElement: Code = "stale element reference"
    static let notInteractable: Code = "element not interactable"
    static let clickIntercepted: Code = "element click intercepted"
    static let detachedRoot: Code = "detached shadow root"
    static let javaScript: Code = "javascript error"
    static let timeout: Code = "timeout"
    /// The code of this client for an answer that WebDriver does not describe, and for none at all.
    static let connection: Code = "connection"
    /// The code of this client for programs that did not start.
    static let start: Code = "not started"
    /// The code of this client for what was awaited and did not come.
    static let awaited: Code = "awaited"
  }

  var code: Code
  var message: String

  /// Whether a page that is changing gives this error, and asking again is worth it.
  var isPassing: Bool {
    [.noSuchElement, .staleElement, .notInteractable, .clickIntercepted, .detachedRoot].contains(code)
  }

  var description: String { "\(code.text): \(message)" }
}
