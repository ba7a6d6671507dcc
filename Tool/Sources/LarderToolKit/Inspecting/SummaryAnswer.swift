internal import Foundation
@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// Output of the command `inspect` for one store.
package struct SummaryAnswer: Answer {
  private let summary: StoreSummary

  /// Creates the output for a summary.
  package init(_ summary: StoreSummary) { self.summary = summary }

  /// Error that reading the store has thrown.
  ///
  /// `nil` if it can be read.
  package var failure: RepositoryError? { summary.failure }

  /// Returns the facts of the store, a table of its collections and a table of its files.
  package func lines(width: Int?) -> [String] {
    let nameWidth = facts.reduce(0) { max($0, $1.name.count) }
    var lines = facts.map { "\($0.name)\(String(repeating: " ", count: nameWidth - $0.name.count))  \($0.text)" }
    if !summary.collections.isEmpty { lines += [""] + collections.lines(width: width) }
    return lines + [""] + files.lines(width: width)
  }

  private var facts: [(name: String, text: String)] {
    var facts = [("store", summary.file.path), ("kind", summary.file.kind.title)]
    if let report = summary.report {
      facts.append(("store id", report.storeID.uuidString))
      if let inspection = summary.inspection { facts.append(("generation", String(inspection.generation))) }
      facts.append(("commit", commit(report)))
      facts.append(("deletions known", report.tombstoneHorizon == .zero ? "all" : "those after commit \(report.tombstoneHorizon)"))
    }
    if let journal = summary.inspection?.journal { facts.append(("journal", text(of: journal))) }
    if let log = summary.log { facts.append(("log", text(of: log))) }
    return facts + [("lock", summary.holders.text)]
  }

  private func commit(_ report: OpenReport) -> String {
    // With a journal, the store is ahead of its main file. Both numbers are needed to judge a copy of the main file alone.
    guard let inspection = summary.inspection, report.commit > inspection.commit else { return String(report.commit.number) }
    return "\(report.commit) (\(inspection.commit) in the main file)"
  }

  private func text(of journal: JournalInspection) -> String {
    var text = counted(journal.frames.count, "frame")
    if let first = journal.frames.first { text += " with commits \(first.commits.lowerBound) to \(journal.lastCommit)" }
    text += ", up to byte \(journal.end)"
    guard case .torn(let count, let isAmbiguous) = journal.tail else { return text }
    // A torn write has parts that are still zeros. Other bytes may be damage to a commit that was acknowledged.
    return text + "; the last write is not whole (\(counted(count, "byte")))"
      + (isAmbiguous ? ", or damaged" : ", and was never acknowledged")
  }

  private func text(of log: SQLiteInspection.Log) -> String {
    let text = "\(counted(log.transactionCount, "transaction")) that are not folded into the database"
    return log.tail.map { "\(text); the last write is not whole (\(counted($0.byteCount, "byte"))), or damaged" } ?? text
  }

  private var collections: TextTable {
    var table = TextTable(["collection", "records", "tombstones", "version", "bytes", "smallest", "median", "largest"])
    for collection in summary.collections {
      // A collection with tombstones alone has no sizes, and a row needs a cell for each title.
      let numbers = [collection.byteCount] + (collection.sizes.map { [$0.smallest, $0.median, $0.largest] } ?? [0, 0, 0])
      table.add(
        [
          TextTable.Cell(collection.name), TextTable.Cell(number: String(collection.recordCount)),
          TextTable.Cell(number: String(collection.tombstoneCount)), TextTable.Cell(collection.versionsText),
        ] + numbers.map { TextTable.Cell(number: String($0)) })
    }
    return table
  }

  private var files: TextTable {
    var table = TextTable(["file", "purpose", "bytes"])
    for member in summary.family.members {
      table.add([TextTable.Cell(member.name), TextTable.Cell(member.role), TextTable.Cell(number: String(member.byteCount))])
    }
    return table
  }

  /// JSON object with `store`, `kind`, `files` and `lock`.
  ///
  /// A store that can be read also has `storeID`, `generation`, `commit`, `tombstonesSince`, `collections`, and `journal` or `log`. Any
  /// other store has `error`.
  package var json: JSONValue {
    var body = JSONObject()
    body["store"] = JSONValue(summary.file.path)
    body["kind"] = JSONValue(summary.file.kind.rawValue)
    body["files"] = .array(
      summary.family.members.map { ["name": JSONValue($0.name), "purpose": JSONValue($0.role), "bytes": JSONValue($0.byteCount)] })
    var lock = JSONObject()
    lock["processes"] = summary.holders.processes.map { .array($0.map { JSONValue($0) }) }
    // Left out if false, so that the other names are enough in nearly all cases.
    if summary.holders.hasUnnamed { lock["unnamed"] = true }
    lock["named"] = summary.holders.named.map { JSONValue($0) }
    body["lock"] = .object(lock)
    // Set also for a store that cannot be read, as long as its header can.
    body["generation"] = summary.inspection.map { JSONValue($0.generation) }
    body["journal"] = summary.inspection?.journal.map(Self.json)
    body["log"] = summary.log.map { log in
      var body = JSONObject()
      body["transactions"] = JSONValue(log.transactionCount)
      body["tornBytes"] = log.tail.map { JSONValue($0.byteCount) }
      return .object(body)
    }
    if let report = summary.report {
      body["storeID"] = JSONValue(report.storeID.uuidString)
      body["commit"] = JSONValue(report.commit.number)
      body["tombstonesSince"] = JSONValue(report.tombstoneHorizon.number)
      body["collections"] = .array(summary.collections.map(\.json))
    }
    if let failure { body["error"] = ErrorReport(failure).json["error"] }
    return .object(body)
  }

  private static func json(_ journal: JournalInspection) -> JSONValue {
    var body = JSONObject()
    body["generation"] = JSONValue(journal.generation)
    body["base"] = JSONValue(journal.base)
    body["frames"] = JSONValue(journal.frames.count)
    body["lastCommit"] = JSONValue(journal.lastCommit)
    body["end"] = JSONValue(journal.end)
    if case .torn(let count, let isAmbiguous) = journal.tail {
      body["tornBytes"] = JSONValue(count)
      body["isAmbiguous"] = JSONValue(isAmbiguous)
    }
    return .object(body)
  }
}
