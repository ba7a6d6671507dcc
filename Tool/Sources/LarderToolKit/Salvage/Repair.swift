@_spi(Inspection) package import Larder

/// Repair of a damaged store: writes every record that can be read to a new store.
package struct Repair: Answer {
  private let source: String
  private let target: String
  let salvage: Salvage
  let contents: StoreContents
  private let isDry: Bool
  private let showsKeys: Bool

  /// Options of the command `repair`.
  package struct Options: Sendable {
    /// Whether a journal is read that does not continue the main file.
    package var takesAnyJournal = false
    /// Names of collections to look for, in case a damaged database has lost them.
    package var collections: [String] = []
    /// Whether the output has keys, and not only their hashes.
    package var showsKeys = false
    /// Whether the store is only read and nothing is written.
    package var isDry = false

    /// Creates options with the defaults.
    package init() {}
  }

  /// Reads the whole records of a damaged store, and writes them to a new one.
  /// - Parameter target: Path of a store that does not exist yet.
  /// - Throws: `.dataMissing` if there is no store, `.locked` while an app has it open, and the errors of writing the new store.
  package init(
    of source: StoreFile, to target: StoreFile, _ options: Options = Options(), _ progress: (Int) -> Void = { _ in }
  ) throws(RepositoryError) {
    self.source = source.path
    self.target = target.path
    (isDry, showsKeys) = (options.isDry, options.showsKeys)
    // The files are read byte by byte, without a snapshot. A running app would change them meanwhile.
    try StoreUse(of: source).check()
    salvage = try ProgressLine.during("reading", source.path) { _ throws(RepositoryError) in
      switch source.kind {
      case .jsonFile: try Self.read(source, options)
      case .sqliteFile: try SQLiteSalvage.read(source, options.collections)
      }
    }
    // A record may have vanished without a tombstone. The horizon makes readers of the store's changes start over instead of resuming.
    let horizon = salvage.hasLosses ? salvage.commit : salvage.horizon
    contents = StoreContents(records: salvage.records, commit: salvage.commit, horizon: min(horizon, salvage.commit))
    // A file that could not be read at all must not become a new, empty store.
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
    // The main file is read first. Its header decides whether the journal is taken, and its losses decide from which commit on.
    if let bytes = try SalvageBytes(source.path + "-journal") {
      salvage =
        try JournalSalvage(
          bytes, continuing: header, takesFolded: hasLosses, takesAny: options.takesAnyJournal, into: salvage
        ).salvage
    }
    return salvage
  }

  /// `.success` if nothing is lost, `.negative` if records may be lost, `.refused` if nothing could be read.
  package var status: ExitStatus {
    if !salvage.isRecognised || contents.records.isEmpty && salvage.hasLosses { return .refused }
    return salvage.hasLosses ? .negative : .success
  }

  /// Returns a line for each problem, then one with the number of saved records.
  package func lines(width: Int?) -> [String] {
    let summary =
      switch status {
      case .success: "nothing is lost"
      case .negative: "something is lost, listed above"
      case .refused, .incomplete: "nothing can be saved"
      }
    let verb = status == .refused ? "not written" : isDry ? "would be written" : "written"
    return salvage.problems.map { $0.line(showingKeys: showsKeys) } + ["\(source): \(contents.summary); \(verb) to \(target); \(summary)"]
  }

  /// JSON object with `store`, `target`, `written`, `verdict`, `commit`, `records`, `tombstones` and `problems`.
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
