@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// Result of checking one store: sound, damaged or unreadable, with all problems that were found.
package struct StoreVerdict: Answer {
  private let path: String
  private let kind: StoreKind?
  private let report: VerifyReport
  private let tail: Tail?

  /// Checks every record, the journal or log and the files of a store.
  ///
  /// Nothing is changed.
  package init(ofStoreAt path: String) {
    self.path = path
    do throws(RepositoryError) {
      let file = try StoreFile(path: path)
      kind = file.kind
      (report, tail) = Self.verify(file)
    } catch {
      // `verify` checks several stores. A path without a store is a problem in its line, and does not end the command.
      kind = nil
      (report, tail) = (VerifyReport(problems: [error]), nil)
    }
  }

  /// Last bytes of a journal or log that are not a whole commit.
  private struct Tail {
    let offset: Int
    let byteCount: Int
    /// Whether the bytes may also be a damaged commit, and not only a write that was cut short.
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
        // Nothing in a write-ahead log distinguishes a write that was cut short from damage.
        return (report, tail.map { Tail(offset: $0.offset, byteCount: $0.byteCount, isAmbiguous: true) })
      }
    } catch {
      return (VerifyReport(problems: [error]), nil)
    }
  }

  private static func verifyJSON(_ file: StoreFile) throws(RepositoryError) -> (VerifyReport, Tail?) {
    // Reading compares every checksum and the order of keys, as opening the store does, and throws at the first problem.
    let reading = try StoreReading(file)
    let tombstones = reading.records.count { $0.value == nil }
    let report = VerifyReport(
      commit: reading.report.commit, recordCount: reading.records.count - tombstones, tombstoneCount: tombstones)
    // An incomplete last write is no problem, since opening cuts it. It is reported beside the verdict.
    guard let journal = try JSONFileInspection(file: file.url).journal, case .torn(let count, let isAmbiguous) = journal.tail else {
      return (report, nil)
    }
    return (report, Tail(offset: journal.end, byteCount: count, isAmbiguous: isAmbiguous))
  }

  /// True if the journal or log ends with a whole commit.
  package var endsWhole: Bool { tail == nil }

  /// `.success` for a sound store, `.negative` for a damaged one, `.refused` for one that cannot be read.
  package var status: ExitStatus {
    if report.isSound { return .success }
    // A missing permission or another program's file is no damage. One such problem makes the whole check inconclusive.
    return report.problems.contains { $0.code != .corrupted } ? .refused : .negative
  }

  private var word: String {
    switch status {
    case .success: "sound"
    case .negative: "damaged"
    case .refused, .incomplete: "cannot be read"
    }
  }

  /// Returns the verdict and a line for each problem.
  package func lines(width: Int?) -> [String] {
    guard status != .success else {
      // A store with an incomplete last write is sound, and a second line reports the write.
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

  /// JSON object with `store`, `kind`, `verdict`, `commit`, `records`, `tombstones` and `problems`, and `tornBytes` for an incomplete last
  /// write.
  package var json: JSONValue {
    var body = JSONObject()
    body["store"] = JSONValue(path)
    body["kind"] = kind.map { JSONValue($0.rawValue) }
    // Programs compare this member, so it is one word, unlike the text.
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
