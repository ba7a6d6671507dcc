import Testing

@testable import WebDriver

extension Trait where Self == ConditionTrait {
  /// For tests that need a browser: they are skipped where none is installed, and the reason is printed.
  static var needsBrowser: Self {
    .enabled("Chromium or chromedriver is not installed (apt-get install chromium chromium-driver)") {
      BrowserAvailability.installed != nil
    }
  }
}
