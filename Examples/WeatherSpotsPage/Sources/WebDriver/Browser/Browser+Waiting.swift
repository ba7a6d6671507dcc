extension Browser {
  /// Asks until there is an answer, and returns that.
  ///
  /// A failure of a page that changes, such as that an element is gone, counts as no answer.
  ///
  /// - Throws: ``WebDriverFailure`` with the page's text and console when the time is over.
  func wait<Value>(
    within limit: Duration = .seconds(10), for what: String, until answer: () async throws -> Value?
  ) async throws -> Value {
    var last = ""
    let found = try await Repetition.within(limit) {
      do {
        let value = try await answer()
        last = ""
        return value
      } catch let failure as WebDriverFailure where failure.isPassing {
        last = " (\(failure))"
        return nil
      }
    }
    if let found { return found }
    throw WebDriverFailure(code: .awaited, message: "\(what), for \(limit), in vain\(last)\n\(await state())")
  }

  /// Asks until a condition holds.
  func wait(within limit: Duration = .seconds(10), for what: String, until holds: () async throws -> Bool) async throws {
    let _: Bool = try await wait(within: limit, for: what) { try await holds() ? true : nil }
  }

  /// Returns the first element that matches and is displayed, once there is one.
  @discardableResult func waitForElement(_ css: String, within limit: Duration = .seconds(10)) async throws -> BrowserElement {
    try await wait(within: limit, for: css) {
      for element in try await elements(css) where try await element.isDisplayed() { return element }
      return nil
    }
  }

  /// Returns what a person would look at when something is missing, cut to a readable size.
  func state() async -> String {
    do {
      let (url, text, console) = (try await url(), try await pageText(), try await console())
      let lines = console.suffix(20).map { "  \($0)" }.joined(separator: "\n")
      return "--- page \(url)\n\(text.prefix(2000))\n--- console\n\(lines)"
    } catch { return "--- no page: \(error)" }
  }
}
