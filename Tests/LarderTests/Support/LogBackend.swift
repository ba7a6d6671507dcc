import Foundation
import Larder
import Synchronization

/// A backend as a stranger would write one, on the public seam only: one line of JSON for each batch, appended to a file.
///
/// It is simple, slow to open and not safe against power loss. With a defect it is wrong in one way, which the conformance suite must find.
final class LogBackend: StorageBackend {
  private static let openPaths = Mutex<Set<String>>([])
  private let file: URL
  private let defect: LogDefect?
  private let state = Mutex(State())

  struct State: Sendable {
    var records: [RecordAddress: StoredRecord] = [:]
    var commit: UInt64 = 0
    var storeID = UUID()
    var tombstoneLimit = 0
    /// The newest deletion that was forgotten.
    var horizon: UInt64 = 0
    var isOpen = false
    var holdsPath = false
    var wasClosed = false
    /// How many lines were appended since the last checkpoint.
    var lines = 0
    /// The rest of a torn last line, and where it begins.
    var torn: OpenReport.CutTail?
    /// How many lines the file had; a clean close leaves one.
    var linesFound = 0
    /// Lines that only a defect leaves unwritten.
    var unwritten: [Line] = []
  }

  struct Line: Codable, Sendable {
    var storeID: UUID
    var commit: UInt64
    var horizon: UInt64
    var rows: [Row]
  }

  struct Row: Codable, Sendable {
    var collection: String
    var key: Data
    var revision: UInt64
    var version: Int
    var value: Data?
  }

  init(file: URL, defect: LogDefect? = nil) {
    self.file = file
    self.defect = defect
  }

  deinit {
    if defect != .keepsLockWhenDropped { releasePath() }
  }

  var name: String { file.path }

  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    guard options.access == .exclusive || defect == .ignoresAccess else { throw RepositoryError(.unsupported, file: name) }
    if defect == .opensOnce, state.withLock({ $0.wasClosed }) { throw RepositoryError(.closed, file: name) }
    let isFree = Self.openPaths.withLock { $0.insert(name).inserted }
    guard isFree || defect == .opensTwice else { throw RepositoryError(.alreadyOpen, file: name) }
    state.withLock { $0.holdsPath = true }
    do {
      var (state, isNew) = try read()
      state.tombstoneLimit = options.limits.tombstones
      state.isOpen = true
      state.holdsPath = true
      self.state.withLock { $0 = state }
      try defect?.didOpen(&isNew)
      if isNew, defect == .createsWhileOpening { try Self.files(name) { try Data().write(to: file) } }
      if defect == .cutsWhileOpening { try cut() }
      var records = state.records.values.sorted { $0.address < $1.address }
      defect?.change(&records)
      for record in records { visit(record) }
      let storeID = defect == .changesIdentity ? UUID() : state.storeID
      let commit = defect?.commit(of: records) ?? state.commit
      return OpenReport(
        storeID: storeID, commit: Revision(commit), isNew: isNew, recordCount: records.count { $0.value != nil },
        replayedCommits: defect == .reportsReplay ? 1 : 0,
        cutTail: state.torn,
        tombstoneHorizon: Revision(defect == .hidesHorizon ? 0 : state.horizon))
    } catch {
      releasePath()
      throw error as? RepositoryError ?? RepositoryError(.inputOutput, file: name, underlying: error)
    }
  }

  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try cut()
    if defect == .recoveryForgets, state.withLock({ $0.linesFound > 1 }) {
      try rewrite { state in
        let newest = state.commit
        state.records = state.records.filter { $0.value.revision.number < newest }
      }
    }
    if report.isNew { try append(Line(storeID: state.withLock { $0.storeID }, commit: 0, horizon: 0, rows: [])) }
    return report
  }

  func abandon() {
    state.withLock { state in
      state.isOpen = false
      state.wasClosed = true
    }
    releasePath()
  }

  func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try checkOpen()
    let newest = state.withLock { $0.commit }
    let first = batch.commits.lowerBound
    let isAccepted =
      first == newest + 1 || (defect == .acceptsGaps && first > newest) || (defect == .acceptsRepeats && first <= newest)
    guard isAccepted else {
      if defect == .keepsPartOfARefusedBatch {
        let known = state.withLock { state in batch.records.filter { state.records[$0.address] != nil } }
        try write(known, commit: newest, .durable)
      }
      throw .notConsecutive(batch, after: Revision(newest), file: name)
    }
    var records = batch.records
    defect?.changeBatch(&records)
    try write(records, commit: batch.commits.upperBound, batch.durability)
  }

  func flush() throws(RepositoryError) {
    try checkOpen(defect != .flushesWhenClosed)
    for line in state.withLock({ $0.unwritten }) { try append(line) }
    state.withLock { $0.unwritten = [] }
    if defect == .flushDropsBuffered { try rewrite { $0.records = $0.records.filter { $0.value.key.text != "a" } } }
  }

  func checkpoint() throws(RepositoryError) {
    try checkOpen()
    let lines = state.withLock { $0.lines }
    try rewrite { state in
      state.forgetOldTombstones(defect)
      if defect == .checkpointDropsTombstones { state.records = state.records.filter { $0.value.value != nil } }
      if defect == .checkpointKeepsOneCollection { state.records = state.records.filter { $0.key.collection == "records" } }
      if defect == .secondCheckpointEmpties, lines == 0 { state.records = [:] }
    }
  }

  func verify() -> VerifyReport {
    do throws(RepositoryError) {
      let (state, _) = try read()
      let count = defect == .verifyCountsTombstones ? state.records.count : state.records.values.count { $0.value != nil }
      return VerifyReport(
        commit: Revision(state.commit), recordCount: count, tombstoneCount: state.records.count - count)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  func backup(to url: URL) throws(RepositoryError) {
    try checkOpen()
    guard defect == .backupReplaces || !FileManager.default.fileExists(atPath: url.path) else {
      throw RepositoryError(.alreadyExists, file: url.path)
    }
    let state = self.state.withLock { $0 }
    try Self.files(name) {
      var rows = state.rows
      if defect == .backupIsOld { rows.removeAll { $0.revision == state.commit } }
      try Self.encode(Line(storeID: state.storeID, commit: state.commit, horizon: state.horizon, rows: rows)).write(to: url)
    }
  }

  func suspend() throws(RepositoryError) {
    if defect == .ignoresSuspension { return }
    try flush()
    try close()
  }

  func resume() throws(RepositoryError) -> Bool { defect == .ignoresSuspension }

  func close() throws(RepositoryError) {
    if defect == .secondCloseThrows, state.withLock({ $0.wasClosed }) { throw RepositoryError(.closed, file: name) }
    let wasOpen = state.withLock { $0.isOpen }
    if wasOpen {
      if defect != .closeKeepsAllTombstones, defect != .closeDropsBuffered { try rewrite { $0.forgetOldTombstones(defect) } }
    }
    state.withLock { state in
      state.isOpen = false
      state.wasClosed = true
    }
    if defect == .refusedCloseReleases { Self.openPaths.withLock { _ = $0.remove(name) } }
    releasePath()
  }

  // MARK: Files

  private func checkOpen(_ checks: Bool = true) throws(RepositoryError) {
    guard state.withLock({ $0.isOpen }) || !checks else { throw RepositoryError(.closed, file: name) }
  }

  private func releasePath() {
    let holdsPath = state.withLock { state in
      defer { state.holdsPath = false }
      return state.holdsPath
    }
    if holdsPath { Self.openPaths.withLock { _ = $0.remove(name) } }
  }

  private func write(_ records: [StoredRecord], commit: UInt64, _ durability: Durability) throws(RepositoryError) {
    let line = state.withLock { state in
      for record in records { state.put(record, defect) }
      state.commit = commit
      state.lines += 1
      return Line(storeID: state.storeID, commit: commit, horizon: state.horizon, rows: records.map(Row.init))
    }
    if durability == .buffered, defect == .keepsBufferedInMemory || defect == .closeDropsBuffered {
      state.withLock { $0.unwritten.append(line) }
    } else {
      try append(line)
    }
  }

  private func append(_ line: Line) throws(RepositoryError) {
    try Self.files(name) {
      if !FileManager.default.fileExists(atPath: name) { try Data().write(to: file) }
      let handle = try FileHandle(forWritingTo: file)
      try handle.seekToEnd()
      try handle.write(contentsOf: Self.encode(line))
      try handle.close()
    }
  }

  private func cut() throws(RepositoryError) {
    guard let torn = state.withLock({ $0.torn }) else { return }
    try Self.files(name) { try Data(contentsOf: file).prefix(Int(torn.offset)).write(to: file) }
  }

  private func rewrite(_ change: (inout State) -> Void) throws(RepositoryError) {
    let line = state.withLock { state in
      change(&state)
      state.lines = 0
      return Line(storeID: state.storeID, commit: state.commit, horizon: state.horizon, rows: state.rows)
    }
    try Self.files(name) { try Self.encode(line).write(to: file) }
  }

  private func read() throws(RepositoryError) -> (State, isNew: Bool) {
    guard FileManager.default.fileExists(atPath: name) else { return (State(), true) }
    let data = try Self.files(name) { try Data(contentsOf: file) }
    let lines = data.split(separator: UInt8(ascii: "\n"))
    var state = State()
    state.linesFound = lines.count
    for line in lines {
      if line.startIndex > 0, line.endIndex == data.count, line.last == 0 {
        state.torn = OpenReport.CutTail(
          file: name, offset: UInt64(line.startIndex), byteCount: line.count, quarantineFile: "", isAmbiguous: false)
        break
      }
      guard let line = try? JSONDecoder().decode(Line.self, from: Data(line)) else {  // whatever is wrong, it is no line of ours
        guard defect == .replacesForeignFiles else { throw RepositoryError(.notOurStore, file: name) }
        try Self.files(name) { try FileManager.default.removeItem(at: file) }
        return (State(), true)
      }
      state.storeID = line.storeID
      state.commit = line.commit
      state.horizon = line.horizon
      for row in line.rows { state.put(row.record, defect) }
    }
    return (state, false)
  }

  private static func encode(_ line: Line) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(line) + Data("\n".utf8)
  }

  private static func files<Result>(_ path: String, _ body: () throws -> Result) throws(RepositoryError) -> Result {
    do { return try body() } catch { throw RepositoryError(.inputOutput, file: path, underlying: error) }
  }
}

extension LogBackend.State {
  var rows: [LogBackend.Row] { records.values.sorted { $0.address < $1.address }.map(LogBackend.Row.init) }

  mutating func put(_ record: StoredRecord, _ defect: LogDefect?) {
    let address = defect?.address(of: record) ?? record.address
    if let old = records[address], defect?.prefers(old, to: record) == true { return }
    records[address] = record
  }

  mutating func forgetOldTombstones(_ defect: LogDefect?) {
    let tombstones = records.filter { $0.value.value == nil }.sorted { $0.value.revision < $1.value.revision }
    guard tombstones.count > tombstoneLimit, defect != .closeKeepsAllTombstones else { return }
    let surplus = tombstones.count - tombstoneLimit
    for (address, tombstone) in defect == .forgetsNewestTombstones ? tombstones.suffix(surplus) : tombstones.prefix(surplus) {
      records[address] = nil
      horizon = max(horizon, tombstone.revision.number)
    }
  }
}

extension LogBackend.Row {
  init(_ record: StoredRecord) {
    self.init(
      collection: record.collection, key: Data(record.key.text.utf8), revision: record.revision.number, version: record.schemaVersion,
      value: record.value)
  }

  var record: StoredRecord {
    StoredRecord(
      collection: collection, key: RecordKey(String(decoding: key, as: UTF8.self)), revision: Revision(revision), schemaVersion: version,
      value: value)
  }
}
