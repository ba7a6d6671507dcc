import Foundation
import Larder
import LarderToolKit

/// A command as these tests try it on a store, in this process.
enum TriedCommand: String, CaseIterable, Sendable {
  case verify, inspect, history, query, dump, diff
  case convert, backup, restore, repair, reseal

  static let reading: [TriedCommand] = [.verify, .inspect, .history, .query, .dump, .diff]
  static let writing: [TriedCommand] = [.convert, .backup, .restore, .repair, .reseal]

  /// Whether keys or values are in its answer, which the guides say.
  var showsContents: Bool { [.history, .query, .dump, .diff, .reseal].contains(self) }
  /// Whether it makes a store.
  var makesStore: Bool { [.convert, .backup, .restore, .repair].contains(self) }

  /// The exit code, and all text that goes with it.
  typealias Answered = (status: ExitStatus, text: String)

  /// Does what the command does.
  /// - Parameter target: The path of a new store without the ending of its name.
  func run(_ store: String, to target: String) -> Answered {
    do throws(RepositoryError) { return try perform(store, target) } catch {
      let report = ErrorReport(error)
      return (.refused, said(report, .refused).text + "\(error) \(String(reflecting: error))")
    }
  }

  private func perform(_ store: String, _ target: String) throws(RepositoryError) -> Answered {
    if self == .verify {
      let verdict = StoreVerdict(ofStoreAt: store)
      return said(verdict, verdict.status)
    }
    if self == .inspect {
      let summary = try StoreSummary(path: store)
      return said(SummaryAnswer(summary), summary.failure == nil ? .success : .refused)
    }
    let source = try StoreFile(path: store)
    switch self {
    case .verify, .inspect: return (.success, "")
    case .history:
      let history = try StoreHistory(source, limit: 100)
      return (.success, (history.table.lines(width: 80) + history.jsonLines).joined())
    case .query:
      let reading = try StoreReading(source)
      var lines: [String] = []
      for collection in reading.collections { lines += RecordQuery().run(try reading.records(of: collection)).jsonLines }
      return (.success, lines.joined())
    case .dump:
      let lines = try StoreDump(StoreReading(source), hasTombstones: true).records.map(\.line)
      return (.success, lines.map { String(decoding: $0, as: UTF8.self) }.joined())
    case .diff:
      let differences = RecordDifference.all(between: try ComparedRecords(path: store), and: try ComparedRecords(path: store))
      return (differences.isEmpty ? .success : .negative, "")
    case .convert:
      let other: StoreKind = source.kind == .jsonFile ? .sqliteFile : .jsonFile
      return said(try Conversion(of: source, to: StoreFile(newAt: target, kind: other), isDry: false), .success)
    case .backup:
      return said(try StoreBackup(of: source, to: StoreFile(newAt: target, kind: source.kind)), .success)
    case .restore:
      let new = try StoreFile(newAt: target, kind: source.kind)
      return said(try StoreRestoration(of: source, to: new, replaces: false, isDry: false, now: Date()), .success)
    case .repair:
      let repair = try Repair(of: source, to: StoreFile(newAt: target, kind: source.kind))
      return said(repair, repair.status)
    case .reseal:
      let resealing = try Resealing(of: source, Resealing.Options(), now: Date())
      return said(resealing, resealing.status)
    }
  }

  private func said(_ answer: some Answer, _ status: ExitStatus) -> Answered {
    (status, answer.lines(width: nil).joined(separator: "\n") + answer.json.text)
  }

  /// The arguments for the built tool.
  func arguments(_ store: String, to target: String) -> [String] {
    let (ending, other) = store.hasSuffix("json") ? (".json", ".sqlite") : (".sqlite", ".json")
    return switch self {
    case .verify, .inspect, .history, .dump, .reseal: [rawValue, store]
    case .query: [rawValue, store, "spots"]
    case .diff: [rawValue, store, store]
    case .convert: [rawValue, store, "--to", target + other]
    case .backup, .restore, .repair: [rawValue, store, "--to", target + ending]
    }
  }
}
