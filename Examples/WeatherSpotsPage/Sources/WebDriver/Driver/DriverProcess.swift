import Foundation

/// A chromedriver with its browsers and all their files, which end with the process of the tests at the latest.
final class DriverProcess: Sendable {
  /// The directory of everything that chromedriver and its browsers write.
  let directory: String
  let port: Int
  let programs: BrowserAvailability
  /// The number of the process, and of the group that its browsers are in.
  let group: Int32
  private let process: Process
  private let watchdog: DriverWatchdog

  // The number is written down before anything runs that must be ended.
  private static let script = """
    echo $$ >"$1/group" && exec "$2" --port=0 >"$1/driver.log" 2>&1
    """

  private init(
    _ directory: String, _ port: Int, _ programs: BrowserAvailability, _ process: Process, _ watchdog: DriverWatchdog
  ) {
    (self.directory, self.port, self.programs, self.process, self.watchdog) = (directory, port, programs, process, watchdog)
    group = process.processIdentifier
  }

  /// Starts chromedriver, and returns when it takes requests.
  static func start() async throws -> DriverProcess {
    guard let programs = BrowserAvailability.installed else {
      throw WebDriverFailure(code: .start, message: "chromedriver or chromium is not installed")
    }
    return try await start(programs)
  }

  /// Starts chromedriver, and returns when it takes requests.
  static func start(_ programs: BrowserAvailability) async throws -> DriverProcess {
    var tries = 1
    while true {
      do { return try await startOnce(programs) } catch let failure as WebDriverFailure
        // It takes a free port of one family of addresses, and ends when the other one has a server there: perhaps that of another test.
        where tries < 10 && failure.message.contains("port not available")
      { tries += 1 }
    }
  }

  private static func startOnce(_ programs: BrowserAvailability) async throws -> DriverProcess {
    // A short name: sockets are in there, and the path of one has about 100 bytes at most.
    let name = "webdriver-\(String(UInt64.random(in: .min ... .max), radix: 36))"
    let directory = FileManager.default.temporaryDirectory.appending(path: name).path
    try FileManager.default.createDirectory(atPath: "\(directory)/tmp", withIntermediateDirectories: true)
    let watchdog = try DriverWatchdog(directory: directory)
    do {
      let process = try launch(programs, directory)
      let port = try await port(of: process, log: "\(directory)/driver.log")
      return DriverProcess(directory, port, programs, process, watchdog)
    } catch {
      try await watchdog.end()
      throw error
    }
  }

  private static func launch(_ programs: BrowserAvailability, _ directory: String) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script, "webdriver", directory, programs.driver]
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    // Chromium writes to all of these, besides its user data.
    let places = [
      "HOME": directory, "TMPDIR": "\(directory)/tmp", "XDG_CONFIG_HOME": "\(directory)/config", "XDG_CACHE_HOME": "\(directory)/cache",
    ]
    process.environment = ProcessInfo.processInfo.environment.merging(places) { $1 }
    (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, FileHandle.nullDevice)
    process.standardError = FileHandle.nullDevice
    try process.run()
    // Foundation makes it so, on Linux and on macOS, and does not promise it; the watchdog ends the group.
    guard getpgid(process.processIdentifier) == process.processIdentifier || !process.isRunning else {
      process.terminate()
      throw WebDriverFailure(code: .start, message: "chromedriver is not in a group of its own")
    }
    return process
  }

  /// Returns the port that chromedriver has told.
  private static func port(of process: Process, log: String) async throws -> Int {
    var written = ""
    let started = /started successfully on port (\d+)/
    let port: Int?? = try await Repetition.within(.seconds(60)) {
      // Asked before reading: what an ended process has written is all there.
      let isRunning = process.isRunning
      if FileManager.default.fileExists(atPath: log) { written = try String(contentsOfFile: log, encoding: .utf8) }
      if let match = written.firstMatch(of: started), let port = Int(match.1) { return port }
      return isRunning ? nil : .some(nil)
    }
    if case .some(.some(let port)) = port { return port }
    throw WebDriverFailure(code: .start, message: "chromedriver did not start: \(written)")
  }

  /// Ends chromedriver and its browsers, and returns when their processes and files are gone.
  func end() async throws { try await watchdog.end() }

  /// Runs something with a chromedriver, and ends that afterwards in any case.
  static func running<Result>(_ body: (DriverProcess) async throws -> Result) async throws -> Result {
    let driver = try await start()
    let result: Result
    do { result = try await body(driver) } catch {
      try await driver.end()
      throw error
    }
    try await driver.end()
    return result
  }
}
