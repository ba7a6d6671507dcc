internal import Foundation
internal import Larder

/// Verification and backup.
extension SQLiteStore {
  /// Checks everything, and reports each problem.
  func verify() -> VerifyReport {
    let clock = ContinuousClock()
    let start = clock.now
    var report = VerifyReport()
    do throws(RepositoryError) {
      let scan: SQLiteScan
      if let writer = try writer() {
        scan = try SQLiteScan(writer.connection, stopsAtDamage: false)
        while try scan.next() != nil {}
        if writer.sharing == nil, scan.row != writer.row, scan.problems.isEmpty {
          report.problems.append(writer.connection.damaged("expected the records of commit \(writer.row.commit), found others"))
        }
        report.problems += try scan.problems + Self.integrityProblems(writer.connection)
      } else if let path {
        let found = try SQLiteReadOnlyReader(path, fileSystem).verify()
        scan = found.scan
        report.problems += found.problems
      } else {
        throw notOpen
      }
      report.commit = Revision(scan.row.commit)
      report.recordCount = scan.recordCount
      report.tombstoneCount = scan.tombstoneCount
    } catch {
      report.problems.append(error)
    }
    report.duration = clock.now - start
    return report
  }

  /// Runs SQLite's own full check.
  static func integrityProblems(_ connection: SQLiteConnection) throws(RepositoryError) -> [RepositoryError] {
    let count = try connection.problemCount(.full, limit: 100)
    return count == 0 ? [] : [connection.damaged("SQLite's integrity check found \(count) problems: restore a backup")]
  }

  /// Writes a compact copy, durably, under another name first.
  func backup(to url: URL) throws(RepositoryError) {
    let writer = try writer()
    try writer?.checkUse()
    // So that the copy has the whole digest; on a full disk, or while another program writes, it has half of it.
    do throws(RepositoryError) {
      try writer?.connection.waiting(.zero) { () throws(RepositoryError) in try writer?.storeRow() }
    } catch {
      guard [.full, .locked].contains(error.code) else { throw error }
    }
    let connection = try connectionForCopying(writer)
    let fileSystem = fileSystem
    let target = try SQLitePath(url) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    try SQLiteDraft.copy(of: connection, to: target, fileSystem)
  }

  /// Returns the writer's connection, or a new one while a commit has begun: it sees the state before that commit.
  private func connectionForCopying(_ writer: SQLiteWriter?) throws(RepositoryError) -> SQLiteConnection {
    if let writer, !writer.connection.isInTransaction { return writer.connection }
    guard let path else { throw notOpen }
    guard let connection = try SQLiteConnection(path: path.main, .readOnly) else { throw path.vanished }
    return connection
  }
}
