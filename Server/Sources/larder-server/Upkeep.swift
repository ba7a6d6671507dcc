internal import ArgumentParser
internal import Foundation
internal import LarderServer

/// `larder-server backup`.
struct BackUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Writes a copy of everything to a new file; the server may go on meanwhile.")
  @OptionGroup var store: StoreOptions
  @Argument(help: "The file of the copy, which must not exist.") var file: String

  func run() async throws {
    try await store.withStore { try await $0.backUp(to: file) }
  }
}

/// `larder-server restore`.
struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes a store of a copy, with another history: devices give back what the copy does not have.",
    discussion: "With PostgreSQL, restore the database first (pg_restore), then run this without a file: the store gets another history.")
  @OptionGroup var store: StoreOptions
  @Argument(help: "The file that backup wrote; none with PostgreSQL.") var file: String?

  func run() async throws {
    do {
      switch (try store.place(), file) {
      case (.sqlite(let target), let file?): try await restore(file, to: target)
      case (.postgreSQL, nil):
        try await store.withStore { store in
          try await Self.check(store)
          print("the history is \(try await store.changeHistory()) now")
        }
      case (.sqlite, nil): throw ServerError(expected: "the file that backup wrote", found: "none", advice: "name it behind the options")
      case (.postgreSQL, _?):
        throw ServerError(
          expected: "no file with PostgreSQL", found: "one",
          advice: "restore the database with pg_restore first, then run this without the file")
      }
    } catch let code as ExitCode { throw code } catch { throw fail(error) }
  }

  /// Makes a store of a copy, which is checked before anything is written, and becomes the store in one step.
  private func restore(_ file: String, to target: String) async throws {
    try Self.refuseStore(at: target)
    let draft = try DraftFile(for: target)
    let history: String
    do {
      try await Self.with(file) { copy in
        try await Self.check(copy)
        try await copy.backUp(to: draft.path)
      }
      history = try await Self.with(draft.path) { try await $0.changeHistory() }
      guard !FileManager.default.fileExists(atPath: draft.path + "-wal") else {
        // The new history is in it, and a log does not go with the file that is renamed.
        throw ServerError(
          expected: "a copy that is one file", found: "a log beside it, which could not be folded", advice: "free some space on its disk")
      }
      // A server may have been started meanwhile.
      try Self.refuseStore(at: target)
      try draft.publish(replacing: false)
    } catch {
      draft.discard()
      throw error
    }
    print("restored; the history is \(history) now")
  }

  private static func refuseStore(at path: String) throws(ServerError) {
    guard ["", "-wal", "-journal"].allSatisfy({ !FileManager.default.fileExists(atPath: path + $0) }) else {
      throw ServerError(expected: "no store at \(path)", found: "one", advice: "end the server, and move the old store away first")
    }
  }

  /// Runs work on the store in a file, which is closed afterwards.
  private static func with<Value>(_ file: String, _ work: (SQLSyncStore) async throws -> Value) async throws -> Value {
    let store = try await SQLSyncStore.open(sqlite: file, creates: false, logger: ServerLog.quiet)
    let result: Result<Value, any Error>
    do { result = .success(try await work(store)) } catch { result = .failure(error) }
    await store.close()
    return try result.get()
  }

  private static func check(_ copy: SQLSyncStore) async throws {
    let findings = try await copy.doctor().findings
    guard findings.isEmpty else {
      throw ServerError(expected: "a copy in order", found: findings.joined(separator: "; "), advice: "restore another copy")
    }
  }
}

/// The bounds of `--days`.
enum Age {
  private static let most = 1_000_000.0

  /// - Throws: `ValidationError` for an age out of bounds, and for NaN, which no range contains.
  static func check(_ days: Double) throws {
    guard (0...most).contains(days) else { throw ValidationError("Expected 0 to \(Int(most)) for --days, found \(days).") }
  }
}

extension SQLSyncStore {
  /// Returns a scope; `nil` where none has the name.
  fileprivate func scope(named name: String) async throws -> ScopeSummary? {
    // By bytes: two texts that Unicode takes for the same are two scopes.
    try await scopes(prefix: name, limit: 1).first { $0.scope.utf8.elementsEqual(name.utf8) }
  }
}

/// `larder-server purge`.
struct Purge: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Forgets old deletions; devices that were away for longer read everything again.")
  @OptionGroup var store: StoreOptions
  @Option(help: "The age in days from which deletions are forgotten.") var days = 180.0
  @Option(help: "The scope; all without it.") var scope: String?

  func validate() throws { try Age.check(days) }

  func run() async throws {
    try await store.withStore { store in
      if let scope, try await store.scope(named: scope) == nil {
        throw ServerError(expected: "a scope of the store", found: "'\(scope)'", advice: "look at 'larder-server scopes'")
      }
      print("\(try await store.purge(olderThanDays: days, scope: scope)) deletions forgotten")
    }
  }
}

/// `larder-server scopes`.
struct Scopes: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Lists the scopes: name, head, horizon and lowest schema version.")
  @OptionGroup var store: StoreOptions
  @Option(help: "The beginning of the names.") var prefix = ""
  @Option(help: "The scope of which to set the lowest schema version.") var scope: String?
  @Option(help: "The lowest schema version of records that the scope takes from now on.") var minimum: Int?

  func validate() throws {
    guard (scope == nil) == (minimum == nil) else { throw ValidationError("Expected --scope and --minimum together.") }
    guard let minimum, !(0...Int(Int32.max)).contains(minimum) else { return }
    throw ValidationError("Expected 0 to \(Int32.max) for --minimum, found \(minimum).")
  }

  func run() async throws {
    try await store.withStore { store in
      if let scope, let minimum {
        try await store.setMinimum(minimum, of: scope)
        if try await store.scope(named: scope)?.head == 0 {
          print("nobody has written '\(printable(scope))' yet: it takes records of schema version \(minimum) or above, once there are any")
        }
        return
      }
      var last = ""
      while case let page = try await store.scopes(prefix: prefix, after: last), let newest = page.last {
        for scope in page { print("\(printable(scope.scope))\t\(scope.head)\t\(scope.horizon)\t\(scope.minimum)") }
        last = newest.scope
      }
    }
  }
}

/// `larder-server doctor`.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Checks the database and the rules that every commit keeps.")
  @OptionGroup var store: StoreOptions

  func run() async throws {
    try await store.withStore { store in
      let report = try await store.doctor()
      print("\(report.scopes) scopes, \(report.records) records, \(report.tombstones) deletions, \(report.devices) devices")
      for risk in report.risks { print("risk: \(printable(risk))") }
      for finding in report.findings { print("finding: \(printable(finding))") }
      if !report.findings.isEmpty { throw ExitCode.failure }
      print("everything is in order")
    }
  }
}
