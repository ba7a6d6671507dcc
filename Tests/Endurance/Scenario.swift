import Foundation

/// One object of the library, and one use of it that is done many times.
struct Scenario: Sendable {
  let name: String
  /// The number of uses in a full run.
  let uses: Int
  /// The number of usual uses that one of these takes the time of: so many fewer are made in a short run.
  let weight: Int
  /// The bytes that its bounded buffers may come to hold, in less uses than they are bounded by.
  let bytes: Int
  /// The bytes that each use may leave, where an object keeps a list of what was done with it.
  let bytesPerUse: Int
  /// Makes the object.
  let prepare: @Sendable (Place) async throws -> Subject

  init(
    _ name: String, uses: Int = 100_000, weight: Int = 1, bytes: Int = 0, bytesPerUse: Int = 0,
    _ prepare: @escaping @Sendable (Place) async throws -> Subject
  ) {
    self.name = name
    self.uses = uses
    self.weight = weight
    self.bytes = bytes
    self.bytesPerUse = bytesPerUse
    self.prepare = prepare
  }
}

/// An object that is being used.
struct Subject: Sendable {
  /// Uses it for the so-manieth time, and checks the answer.
  let use: @Sendable (Int) async throws -> Void
  /// Does what the object may put off, such as folding a journal: what is then held is what is needed.
  let settle: @Sendable () async throws -> Void
  /// Closes what was opened.
  let end: @Sendable () async throws -> Void

  init(
    _ use: @escaping @Sendable (Int) async throws -> Void, settle: @escaping @Sendable () async throws -> Void = {},
    end: @escaping @Sendable () async throws -> Void = {}
  ) {
    self.use = use
    self.settle = settle
    self.end = end
  }
}

/// The directory of a run of a scenario.
struct Place: Sendable {
  let directory: URL

  /// Returns the URL of a file in the directory.
  func file(_ name: String) -> URL { directory.appendingPathComponent(name, isDirectory: false) }

  /// Runs work with a directory of its own, and removes it.
  static func with<Result>(_ body: (Place) async throws -> Result) async throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "larder-endurance-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await body(Place(directory: directory))) } catch { result = .failure(error) }
    try await remove(directory)
    return try result.get()
  }

  /// Removes a directory; a store that was dropped may remove files of its own from it meanwhile.
  private static func remove(_ directory: URL) async throws {
    for _ in 0..<1_000 {
      do { return try FileManager.default.removeItem(at: directory) } catch { await Task.yield() }
    }
    try FileManager.default.removeItem(at: directory)
  }
}

/// An answer that was not the expected one.
struct WrongAnswer: Error, CustomStringConvertible {
  let description: String
}

/// Throws unless the answer is the expected one.
func expect(_ isAsExpected: Bool, _ expected: @autoclosure () -> String) throws {
  if !isAsExpected { throw WrongAnswer(description: "expected \(expected())") }
}
