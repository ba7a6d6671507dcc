import Foundation

/// The browser of this machine, and the program that drives it.
struct BrowserAvailability: Sendable {
  let driver: String
  let browser: String

  /// The installed programs; `nil` where one is missing, which is printed once.
  static let installed: BrowserAvailability? = {
    switch find(ProcessInfo.processInfo.environment) {
    case .success(let found): return found
    case .failure(let missing):
      print("skipped: \(missing.reason)")
      return nil
    }
  }()

  /// The reason why there is no browser, in a sentence.
  struct Missing: Error {
    let reason: String
  }

  /// Finds the programs: those that `WEBDRIVER_CHROMEDRIVER` and `WEBDRIVER_CHROMIUM` name, or those in the usual places.
  static func find(
    _ environment: [String: String], besides places: [String] = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
  ) -> Result<BrowserAvailability, Missing> {
    let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init) + places
    func first(_ variable: String, _ names: [String], _ paths: [String] = []) -> String? {
      if let named = environment[variable] { return FileManager.default.isExecutableFile(atPath: named) ? named : nil }
      let all = names.flatMap { name in folders.map { "\($0)/\(name)" } } + paths
      return all.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    guard let driver = first("WEBDRIVER_CHROMEDRIVER", ["chromedriver"]) else {
      return .failure(Missing(reason: "tests in a browser: chromedriver is not installed (apt-get install chromium-driver)"))
    }
    var applications: [String] = []
    #if os(macOS)
      applications = ["Chromium", "Google Chrome"].map { "/Applications/\($0).app/Contents/MacOS/\($0)" }
    #endif
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
    guard let browser = first("WEBDRIVER_CHROMIUM", names, applications) else {
      return .failure(Missing(reason: "tests in a browser: chromium is not installed (apt-get install chromium)"))
    }
    return .success(BrowserAvailability(driver: driver, browser: browser))
  }
}
