@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// The verdict on one store.
package struct StoreVerdict: Answer {
  private let path: String
  private let kind: StoreKind?
  private let report: VerifyReport
  private let tail: Tail?

  /// Checks everything at a path, and changes nothing.
  package init(ofStoreAt path: String) {
    self.path = path
    do throws(RepositoryError) {
      let file = try StoreFile(path: path)
      kind = file.kind
      (report, tail) = Self.verify(file)
    } catch {
      kind = nil
      (report, tail) = (VerifyReport(problems: [error]), nil)
    }
  }

  /// The end of a journal or log that is no whole commit.
  private struct Tail {
    let offset: Int
    let byteCount: Int
    /// Whether damage is as likely as a write that was not finished.
    let isAmbiguous: Bool
  }

  private static func verify(_ file: StoreFile) -> (VerifyReport, Tail?) {
    do throws(RepositoryError) {
      switch file.kind {
      case .jsonFile: return try verifyJSON(file)
      case .sqliteFile:
        let (report, tail) = try ProgressLine.during("checking", file.path) { _ throws(RepositoryError) in
          try SQLiteInspection(file: file.url).verify()
        }
        // Nothing in a log distinguishes the two.
        return (report, tail.map { Tail(offset: $0.offset, byteCount: $0.byteCount, isAmbiguous: true) })
      }
    } catch {
      return (VerifyReport(problems: [error]), nil)
    }
  }

  private static func verifyJSON(_ file: StoreFile) throws(RepositoryError) -> (VerifyReport, Tail?) {
    let reading = try StoreReading(file)
    let tombstones = reading.records.count { $0.value == nil }
    let report = VerifyReport(
      commit: reading.report.commit, recordCount: reading.records.count - tombstones, tombstoneCount: tombstones)
    guard let journal = try JSONFileInspection(file: file.url).journal, case .torn(let count, let isAmbiguous) = journal.tail else {
      return (report, nil)
    }
    return (report, Tail(offset: journal.end, byteCount: count, isAmbiguous: isAmbiguous))
  }

  /// Whether a journal or log ends with a whole commit.
  package var endsWhole: Bool { tail == nil }

  /// Sound, damaged, or not readable.
  package var status: ExitStatus {
    if report.isSound { return .success }
    return report.problems.contains { $0.code != .corrupted } ? .refused : .negative
  }

  private var word: String {
    switch status {
    case .success: "sound"
    case .negative: "damaged"
    case .refused, .incomplete: "cannot be read"
    }
  }

  /// The verdict, and a line for each problem.
  package func lines(width: Int?) -> [String] {
    guard status != .success else {
      let counts = "\(counted(report.recordCount, "record")) and \(counted(report.tombstoneCount, "tombstone"))"
      return ["\(path): sound: \(counts) at commit \(report.commit)"] + (tail.map { ["  \(Self.text(of: $0))"] } ?? [])
    }
    return ["\(path): \(word)"]
      + report.problems.flatMap { problem in
        ["  \(problem)"] + (ErrorReport.advice(for: problem.code).map { ["    \($0)"] } ?? [])
      }
  }

  private static func text(of tail: Tail) -> String {
    let bytes = "the last \(counted(tail.byteCount, "byte")) of the journal, from byte \(tail.offset), are no whole commit: "
    return bytes
      + (tail.isAmbiguous
        ? "a write that was cut short, or damage to the last one; the next opening keeps them aside"
        : "a write that was cut short and never acknowledged; the next opening keeps them aside")
  }

  /// An object with `store`, `kind`, `verdict`, `commit`, `records`, `tombstones`, `problems`, and `tornBytes` where there are some.
  package var json: JSONValue {
    var body = JSONObject()
    body["store"] = JSONValue(path)
    body["kind"] = kind.map { JSONValue($0.rawValue) }
    body["verdict"] = JSONValue(status == .refused ? "unreadable" : word)
    if report.isSound {
      body["commit"] = JSONValue(report.commit.number)
      body["records"] = JSONValue(report.recordCount)
      body["tombstones"] = JSONValue(report.tombstoneCount)
    }
    if let tail {
      body["tornBytes"] = [
        "offset": JSONValue(tail.offset), "count": JSONValue(tail.byteCount), "isAmbiguous": JSONValue(tail.isAmbiguous),
      ]
    }
    body["problems"] = .array(report.problems.map { ErrorReport($0).json["error"] ?? .null })
    return .object(body)
  }
}
