@_spi(Inspection) package import Larder

/// The repair of a damaged store: every record that can be read, in a new one.
package struct Repair: Answer {
  private let source: String
  private let target: String
  let salvage: Salvage
  let contents: StoreContents
  private let isDry: Bool
  private let showsKeys: Bool

  /// The options of a repair.
  package struct Options: Sendable {
    /// Whether a journal counts that does not continue the main file.
    package var takesAnyJournal = false
    /// The names of collections, in case a database has lost them.
    package var collections: [String] = []
    /// Whether keys are shown.
    package var showsKeys = false
    /// Whether nothing is written.
    package var isDry = false

    /// Makes options.
    package init() {}
  }

  /// Reads what is left of a store, and writes it to a new one.
  /// - Parameter target: A store that does not exist.
  /// - Throws: `.dataMissing` where there is no store at all; `.locked` while an app has it open; what writing the new store throws.
  package init(
    of source: StoreFile, to target: StoreFile, _ options: Options = Options(), _ progress: (Int) -> Void = { _ in }
  ) throws(RepositoryError) {
    self.source = source.path
    self.target = target.path
    (isDry, showsKeys) = (options.isDry, options.showsKeys)
    try StoreUse(of: source).check()
    salvage = try ProgressLine.during("reading", source.path) { _ throws(RepositoryError) in
      switch source.kind {
      case .jsonFile: try Self.read(source, options)
      case .sqliteFile: try SQLiteSalvage.read(source, options.collections)
      }
    }
    // Who has followed the store must not resume behind a record that vanished without a tombstone.
    let horizon = salvage.hasLosses ? salvage.commit : salvage.horizon
    contents = StoreContents(records: salvage.records, commit: salvage.commit, horizon: min(horizon, salvage.commit))
    guard status != .refused, !isDry else { return }
    try StoreDraft(of: target).fill(contents, progress)
  }

  private static func read(_ source: StoreFile, _ options: Options) throws(RepositoryError) -> Salvage {
    var salvage = Salvage()
    var header: JSONFileParts.Header?
    var hasLosses = true
    if let bytes = try SalvageBytes(source.path) {
      let main = try MainFileSalvage(bytes, into: salvage)
      (salvage, header, hasLosses) = (main.salvage, main.header, main.hasLosses)
    } else {
      salvage.add(SalvageProblem(source.path, "there is no main file: only what its journal holds can be saved"))
    }
    if let bytes = try SalvageBytes(source.path + "-journal") {
      salvage =
        try JournalSalvage(
          bytes, continuing: header, takesFolded: hasLosses, takesAny: options.takesAnyJournal, into: salvage
        ).salvage
    }
    return salvage
  }

  /// Nothing lost, something lost, or nothing that could be read.
  package var status: ExitStatus {
    if !salvage.isRecognised || contents.records.isEmpty && salvage.hasLosses { return .refused }
    return salvage.hasLosses ? .negative : .success
  }

  /// The number of records that were saved, and a line for each loss.
  package func lines(width: Int?) -> [String] {
    let count = "\(contents.recordCount) records and \(contents.tombstoneCount) tombstones at commit \(contents.commit)"
    let summary =
      switch status {
      case .success: "nothing is lost"
      case .negative: "something is lost, listed above"
      case .refused, .incomplete: "nothing can be saved"
      }
    let verb = status == .refused ? "not written" : isDry ? "would be written" : "written"
    return salvage.problems.map { $0.line(showingKeys: showsKeys) } + ["\(source): \(count); \(verb) to \(target); \(summary)"]
  }

  /// An object with `store`, `target`, `written`, `verdict`, `commit`, `records`, `tombstones` and `problems`.
  package var json: JSONValue {
    var body = JSONObject()
    body["store"] = JSONValue(source)
    body["target"] = JSONValue(target)
    body["written"] = JSONValue(status != .refused && !isDry)
    body["verdict"] = status == .success ? "whole" : status == .negative ? "lossy" : "unreadable"
    body["commit"] = JSONValue(contents.commit)
    body["records"] = JSONValue(contents.recordCount)
    body["tombstones"] = JSONValue(contents.tombstoneCount)
    body["problems"] = .array(salvage.problems.map { $0.json(showingKeys: showsKeys) })
    return .object(body)
  }
}
