import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// The numbers of these tests: small ones unless the environment asks for more, by name or with `LARDER_TORTURE` for all.
enum SpotsCounts {
  static func value(_ name: String, _ usual: Int, torture: Int) -> Int {
    let environment = ProcessInfo.processInfo.environment
    return environment[name].flatMap { Int($0) } ?? (environment["LARDER_TORTURE"] == "1" ? torture : usual)
  }

  /// Whether times are to be held, which a machine that does other things cannot.
  static let holdsTimes = ProcessInfo.processInfo.environment["LARDER_SPOTS_TIMES"] != nil
}

/// A store and the commands that are run on it: what a person calls a device.
final class SpotsDevice: Sendable {
  struct Outcome: Sendable {
    let code: Int32
    let output: String
    let errors: String

    /// The number at a key of one object of JSON.
    func number(_ key: String) throws -> Int {
      let object = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]
      return try #require(object?[key] as? Int, "\(key) in \(output) \(errors)")
    }
  }

  let store: String
  private let directory: TemporaryDirectory
  private let now: String?
  private let environment: [String: String]
  private let number = Mutex(0)
  private let running = Mutex<ChildProcess?>(nil)

  /// Makes a device.
  ///
  /// - Parameters:
  ///   - now: The instant that its clock shows; the system's clock without one.
  ///   - environment: Variables of its commands beside those of the tests.
  init(_ name: String, in directory: TemporaryDirectory, now: String? = nil, environment: [String: String] = [:]) {
    store = directory.file(name)
    self.directory = directory
    self.now = now
    self.environment = environment.merging(["XDG_CONFIG_HOME": directory.path]) { $1 }
  }

  /// Runs a command to its end.
  func run(_ arguments: String...) async throws -> Outcome { try await run(arguments) }

  /// Runs a command to its end.
  func run(_ arguments: [String]) async throws -> Outcome {
    let number = number.withLock { number in
      number += 1
      return number
    }
    let files = [store + ".out-\(number)", store + ".err-\(number)"]
    let ends = files.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
    defer { for file in files { unlink(file) } }
    let process = try start(arguments, output: ends[0], errors: ends[1])
    for end in ends { close(end) }
    running.withLock { $0 = process }
    let code = await process.end()
    running.withLock { $0 = nil }
    let texts = files.map { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
    return Outcome(code: code, output: texts[0], errors: texts[1])
  }

  /// Starts a command; the caller ends it.
  func start(_ arguments: [String], output: Int32, errors: Int32) throws -> ChildProcess {
    var all = arguments + ["--store", store]
    // Those that only read have no clock.
    if let now, !["export", "list", "show", "verify"].contains(arguments[0]), !arguments.contains("status"),
      !arguments.contains("conflicts")
    {
      all += ["--now", now]
    }
    return try ChildProcess(
      BuiltPrograms.path("weather-spots"), all, environment: environment, output: output, errors: errors)
  }

  /// Kills the command that runs now.
  /// - Returns: Whether there was one.
  func kill() -> Bool { running.withLock { $0 }?.send(SIGKILL) ?? false }

  /// Runs a command that must succeed.
  @discardableResult
  func expect(_ arguments: String..., at place: SourceLocation = #_sourceLocation) async throws -> Outcome {
    var outcome: Outcome
    var begin: ContinuousClock.Instant
    repeat {
      try Task.checkCancellation()
      begin = .now
      outcome = try await run(arguments)
      // On a busy machine, another command may hold the store for longer than the 10 seconds that a command waits. Nothing was written then.
    } while outcome.code == 75 && .now - begin >= .seconds(10)
    try #require(outcome.code == 0, "\(arguments) ended with \(outcome.code): \(outcome.errors)", sourceLocation: place)
    return outcome
  }

  /// Makes the spot that the tests are about.
  func addPier() async throws { try await expect("add", "Pier", "48.4", "-4.5", "--zone", "Europe/Paris", "--notes", "old") }

  func visits() async throws -> Int { try await expect("show", "Pier", "--json").number("visits") }

  func exported() async throws -> String { try await expect("export", "--format", "csv").output }
}
