import Foundation
import Larder
import TestSupport

@_spi(Inspection) @testable import LarderSQLite

/// The checks after a call has failed, and when the program goes on.
extension SQLiteSeamTrial {
  /// Checks that the error has the code of the fault, or says that the outcome is unknown.
  func checkCode(_ error: RepositoryError, _ step: Step) throws {
    if [.outcomeUnknown, .poisoned].contains(error.code) { return }
    if let fault, faulty.hits > 0, error.code == fault.code { return }
    // A short read is a file that was cut, or a disk that fails; a script breaks the disk or fills it.
    if fault?.effect == .shortRead, [.corrupted, .inputOutput].contains(error.code) { return }
    if faulty.scriptedHits > 0, [.full, .inputOutput].contains(error.code) { return }
    // A store that could not be created is not there.
    if fault?.isPermanent == true, error.code == .dataMissing, state.isEmpty { return }
    throw Violation("\(step): expected the code of the fault, found \(error)")
  }

  /// Checks what the open store says of itself, and what a process that is killed now leaves.
  func checkAfter(_ what: String) throws {
    if let backend, !isSuspended, scenario.options.access != .shared {
      let hits = faulty.hits
      let report = backend.verify()
      if faulty.hits == hits, let problem = report.problems.first { throw Violation("\(what): verify: \(problem)") }
      if faulty.hits == hits, doubtful == nil {
        try expect(report.commit.number == commit, "\(what): verify says commit \(report.commit), not \(commit)")
      }
    }
    try checkFiles(what)
  }

  /// Opens a copy of the files as they are, and compares what is in it with the state.
  func checkFiles(_ what: String) throws {
    countCheck()
    let copy = try SQLiteSeamPlace(try place.files())
    let backend = SQLiteBackend(file: copy.store, disk: SQLiteSeamScenario.disk)
    var found: State = [:]
    do throws(RepositoryError) {
      _ = try backend.openAndRecover(StoreOptions()) { found[$0.address] = text($0) }
    } catch {
      throw Violation("\(what): a copy of the files cannot be opened: \(error)")
    }
    try expect(
      found == state || found == doubtful, "\(what): expected \(Self.describe(state)), the files have \(Self.describe(found))")
    if let problem = backend.verify().problems.first { throw Violation("\(what): verify of a copy: \(problem)") }
    do throws(RepositoryError) { try backend.close() } catch {
      throw Violation("\(what): a copy of the files cannot be closed: \(error)")
    }
    for path in scenario.others where try copy.files()[path] != scenario.files[path] {
      throw Violation("\(what): \(path) is another program's, and was changed")
    }
  }

  /// Leaves a store whose sync has failed, which takes no write any more.
  func reopenPoisoned(_ step: Step) throws {
    if let backend, !isSuspended {
      let next = code { try backend.commit(makeBatch(["poison"], .durable).0) }
      try expect(next == .poisoned, "\(step): expected .poisoned after a sync has failed, found \(String(describing: next))")
    }
    drop()
  }

  /// Goes on with the fault over: opens, writes, is killed, opens again, writes, closes, and copies.
  func goOn() throws {
    if let backend, code({ try backend.flush() }) != nil { drop() }
    for step: Step in [.open, .save(["goes", "on"]), .kill, .open, .save(["again", "-goes"]), .backup, .close] {
      do { try apply(step) } catch { throw Violation("in the end, \(step) fails: \(error)") }
    }
    try checkFiles("in the end")
    let names = Set(try place.files().keys).subtracting(scenario.others)
    for name in names.sorted() {
      let isExpected = [SQLiteSeamScenario.store, SQLiteSeamScenario.copy].contains(name)
      try expect(isExpected || name.hasPrefix(SQLiteSeamScenario.store + "-quarantine-"), "in the end, \(name) stays")
    }
  }

  // MARK: Readers

  /// Reads the store beside the writer, if there is one.
  func read() throws(RepositoryError) {
    let reader = SQLiteBackend(file: place.store, fileSystem: faulty, disk: SQLiteSeamScenario.disk)
    defer { reader.abandon() }
    var found: State = [:]
    let report = try reader.open(StoreOptions(access: .readOnly)) { found[$0.address] = text($0) }
    try compare(found, "reading")
    if try reader.foreignCommits(after: report.commit) != nil { throw RepositoryError(.unsupported, "a commit that nobody made") }
    if let problem = reader.verify().problems.first { throw problem }
    try reader.close()
  }

  /// Reads the store as the tool does, while no process has it open.
  func inspect() throws(RepositoryError) {
    let inspection = try SQLiteInspection(file: place.store, fileSystem: faulty)
    var found: State = [:]
    _ = try inspection.readAll { found[$0.address] = text($0) }
    try compare(found, "inspecting")
    _ = try inspection.log()
    if let problem = inspection.verify().report.problems.first { throw problem }
  }

  func readCopy() throws(RepositoryError) {
    var found: State = [:]
    guard let backend else { return }
    _ = try backend.readCopy(at: place.copy) { found[$0.address] = text($0) }
    try compare(found, "the copy")
    do { try FileManager.default.removeItem(at: place.copy) } catch {
      throw RepositoryError(.unsupported, "the test cannot remove the copy: \(error)")
    }
  }

  private func compare(_ found: State, _ what: String) throws(RepositoryError) {
    if found != state { throw RepositoryError(.unsupported, "\(what): expected \(Self.describe(state)), found \(Self.describe(found))") }
  }
}
