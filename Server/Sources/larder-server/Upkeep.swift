internal import ArgumentParser
internal import Foundation
internal import LarderServer

/// Command `larder-server backup`, which copies the store to a new file.
struct BackUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Writes a copy of everything to a new file; the server may go on meanwhile.")
  @OptionGroup var store: StoreOptions
  @Argument(help: "The file of the copy, which must not exist.") var file: String

  func run() async throws {
    try await store.withStore { try await $0.backUp(to: file) }
  }
}

/// Command `larder-server restore`, which makes a store from a copy and gives it another history.
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

  /// Restores a copy, which is checked before anything is written and becomes the store in one step.
  private func restore(_ file: String, to target: String) async throws {
    try Self.refuseStore(at: target)
    let draft = try DraftFile(for: target)
    let history: String
    do {
      try await Self.with(file) { copy in
        try await Self.check(copy)
        // Not a copy of the bytes, since commits of the copy may still be in its log.
        try await copy.backUp(to: draft.path)
      }
      // By the new history, devices notice the restore and send back the records that the copy lacks.
      history = try await Self.with(draft.path) { try await $0.changeHistory() }
      guard !FileManager.default.fileExists(atPath: draft.path + "-wal") else {
        // The log has the new history, and the rename of the file leaves the log behind.
        throw ServerError(
          expected: "a copy that is one file", found: "a log beside it, which could not be folded", advice: "free some space on its disk")
      }
      // A server may have made a store here meanwhile.
      try Self.refuseStore(at: target)
      try draft.publish(replacing: false)
    } catch {
      draft.discard()
      throw error
    }
    print("restored; the history is \(history) now")
  }

  private static func refuseStore(at path: String) throws(ServerError) {
    // A log that is left over belongs to the old file, and SQLite could apply it to the restored one.
    guard ["", "-wal", "-journal"].allSatisfy({ !FileManager.default.fileExists(atPath: path + $0) }) else {
      throw ServerError(expected: "no store at \(path)", found: "one", advice: "end the server, and move the old store away first")
    }
  }

  /// Runs work on the store in a SQLite file, and closes it afterwards.
  private static func with<Value>(_ file: String, _ work: (SQLSyncStore) async throws -> Value) async throws -> Value {
    // Without the creation of a file, or a mistyped name would make an empty store.
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

/// Bounds of `--days`.
enum Age {
  private static let most = 1_000_000.0

  /// - Throws: `ValidationError` for an age out of bounds, and for NaN, which no range contains.
  static func check(_ days: Double) throws {
    guard (0...most).contains(days) else { throw ValidationError("Expected 0 to \(Int(most)) for --days, found \(days).") }
  }
}

extension SQLSyncStore {
  /// Returns the scope with a name, or `nil`.
  fileprivate func scope(named name: String) async throws -> ScopeSummary? {
    // By bytes, since two spellings of one Unicode text are two scopes.
    try await scopes(prefix: name, limit: 1).first { $0.scope.utf8.elementsEqual(name.utf8) }
  }
}

/// Command `larder-server purge`, which forgets old tombstones.
struct Purge: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Forgets old deletions; devices that were away for longer read everything again.")
  @OptionGroup var store: StoreOptions
  @Option(help: "The age in days from which deletions are forgotten.") var days = 180.0
  @Option(help: "The scope; all without it.") var scope: String?

  func validate() throws { try Age.check(days) }

  func run() async throws {
    try await store.withStore { store in
      // A mistyped scope would otherwise be reported as 0 forgotten deletions.
      if let scope, try await store.scope(named: scope) == nil {
        throw ServerError(expected: "a scope of the store", found: "'\(scope)'", advice: "look at 'larder-server scopes'")
      }
      print("\(try await store.purge(olderThanDays: days, scope: scope)) deletions forgotten")
    }
  }
}

/// Command `larder-server scopes`, which lists scopes and sets their lowest schema version.
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
        // The name may be mistyped, so the output says that the scope is empty.
        if try await store.scope(named: scope)?.head == 0 {
          print("nobody has written '\(printable(scope))' yet: it takes records of schema version \(minimum) or above, once there are any")
        }
        return
      }
      var last = ""
      // In pages, so that any number of scopes fits into memory.
      while case let page = try await store.scopes(prefix: prefix, after: last), let newest = page.last {
        for scope in page { print("\(printable(scope.scope))\t\(scope.head)\t\(scope.horizon)\t\(scope.minimum)") }
        last = newest.scope
      }
    }
  }
}

/// Command `larder-server doctor`, which checks the store.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Checks the database and the rules that every commit keeps.")
  @OptionGroup var store: StoreOptions

  func run() async throws {
    try await store.withStore { store in
      let report = try await store.doctor()
      print("\(report.scopes) scopes, \(report.records) records, \(report.tombstones) deletions, \(report.devices) devices")
      for risk in report.risks { print("risk: \(printable(risk))") }
      for finding in report.findings { print("finding: \(printable(finding))") }
      // A risky setting alone is no failure, because the store itself is in order.
      if !report.findings.isEmpty { throw ExitCode.failure }
      print("everything is in order")
    }
  }
}
