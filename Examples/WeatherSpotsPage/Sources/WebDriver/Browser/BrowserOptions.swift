/// The settings of a new browser.
struct BrowserOptions: Sendable {
  var width = 1280
  var height = 900
  /// The language of the browser and of the pages that it asks for.
  var language = "en-US"
  /// The preferences of the profile, by their names with dots.
  var preferences: [String: JSON] = [:]
  /// More arguments of Chromium.
  var arguments: [String] = []
  /// Whether the names of other machines are known: a test needs none, and Chromium itself asks some.
  var resolvesNames = false

  /// Returns what WebDriver calls capabilities.
  func capabilities(browser: String, profile: String) -> JSON {
    var all = [
      "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--user-data-dir=\(profile)", "--window-size=\(width),\(height)",
      "--lang=\(language)", "--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
      "--log-net-log=\(profile).requests",
    ]
    if !resolvesNames { all.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost") }
    var preferences = preferences
    preferences["intl.accept_languages"] = .string(language)
    let chrome: JSON = [
      "binary": .string(browser), "args": .array((all + arguments).map { .string($0) }), "prefs": .object(preferences),
      "perfLoggingPrefs": ["enableNetwork": true, "enablePage": false],
    ]
    return [
      "capabilities": [
        "alwaysMatch": [
          "browserName": "chrome", "goog:chromeOptions": chrome, "goog:loggingPrefs": ["browser": "ALL", "performance": "ALL"],
          // Below the limit of a request, so that chromedriver is the one to say what took too long.
          "timeouts": ["implicit": 0, "pageLoad": 40_000, "script": 30_000],
        ]
      ]
    ]
  }
}
