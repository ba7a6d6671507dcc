import ArgumentParser
import Larder
import Synchronization
import WeatherSpotsKit

struct Migrate: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Rewrites the spots of an older version of this program.",
    discussion: """
      This is optional: older spots are readable, and a changed spot is stored as the new version. Afterwards, versions of \
      this program that are older refuse the store. First a copy of the store is made beside it. A spot that cannot be rewritten stays as \
      it was and is reported (exit code 76); the others go on. After an interruption, the next run continues.
      """)

  @Flag(help: "Migrate every spot in memory, report, and change nothing.")
  var dryRun = false

  @OptionGroup var globals: GlobalOptions

  func execute() async throws { try await dryRun ? tryOut() : migrate() }

  private func tryOut() async throws {
    // The dry run opens the file by itself: `withStore` would open it for writing.
    let report = try await SpotStore.dryRun(file: try globals.file(creating: false))
    if globals.json { try writeJSON(Self.row(report)) } else { try writeText(Self.text(report)) }
    try end(report.failures, report.failureCount)
  }

  private func migrate() async throws {
    // The progress handler is `@Sendable` and cannot capture a mutable variable.
    let bar = Mutex(ProgressBar("Migrating"))
    let policy = StoreOptions.Migration(mode: .eager) { progress in
      // An empty store has a total of zero.
      bar.withLock { $0.show(Double(progress.done) / Double(max(progress.total, 1))) }
    }
    let progress = try await globals.withStore(migration: policy) { storage in storage.spots.migrationProgress }
    // The bar is removed before any other line is written to the terminal.
    bar.withLock { $0.finish() }
    if let error = progress.error { throw error }
    if globals.json { try writeJSON(Self.row(progress)) } else { try writeText(Self.text(progress)) }
    try end(progress.failures, progress.failureCount)
  }

  private func end(_ failures: [UndecodableRecord], _ count: Int) throws {
    for failure in failures.prefix(20) { note("a spot of version \(failure.schemaVersion) cannot be rewritten: \(failure.error)") }
    // The notes above already are the message. A `Failure` would add another line.
    if count > 0 { throw ExitCode(Outcome.storeRefused.rawValue) }
  }

  private static func row(_ report: DryRunReport) -> JSONRow {
    let found: [JSONRow] = report.versions.map { ["version": $0.version, "spots": $0.count, "failures": $0.failureCount] }
    return ["version": report.schemaVersion, "found": found, "milliseconds": Int(report.duration / .milliseconds(1))]
  }

  private static func text(_ report: DryRunReport) -> String {
    let lines = report.versions.map { part in
      let what = part.version == report.schemaVersion ? "stay as they are" : "would be rewritten as version \(report.schemaVersion)"
      return "Version \(part.version): \(part.count) spots \(what)\(part.failureCount == 0 ? "" : ", \(part.failureCount) cannot be")\n"
    }
    let milliseconds = Int(report.duration / .milliseconds(1))
    return (lines.isEmpty ? "No spots.\n" : lines.joined()) + "Tried in \(milliseconds) ms; nothing was changed.\n"
  }

  private static func row(_ progress: MigrationProgress) -> JSONRow {
    let row: JSONRow = ["version": progress.version, "rewritten": progress.rewritten, "failures": progress.failureCount]
    return progress.backupFile.map { row.adding("copy", $0) } ?? row
  }

  private static func text(_ progress: MigrationProgress) -> String {
    let (version, failures) = (progress.version, progress.failureCount)
    // A store without old records has no copy made beside it, so there is no copy to name.
    guard progress.rewritten + failures > 0 else { return "Nothing to do: all spots are of version \(version).\n" }
    let copied = progress.backupFile.map { "The store as it was is in \($0).\n" } ?? ""
    return "Rewrote \(progress.rewritten) spots as version \(version)\(failures == 0 ? "" : ", \(failures) could not be").\n\(copied)"
  }
}
