internal import Foundation
internal import Larder

/// The salvage of a SQLite database, page by page: first along its trees, then whatever page no tree leads to.
///
/// SQLite itself stops at the first page that it cannot read; here a row counts where its own checksum matches.
struct SQLiteSalvage {
  private let image: SQLiteImage
  private var salvage = Salvage()
  private var visited: Set<Int> = []
  private var overflow: Set<Int> = []
  private var isDamaged = false
  /// The tables that are known, with the pages at which their trees begin.
  private var tables: [String: Int] = [:]
  /// The tables whose statement is none of the format: those of other programs, and one whose statement is damaged.
  private var doubtful: Set<String> = []

  private static let store = "larder_store"
  private static let tombstones = "larder_tombstones"

  /// Reads everything that is whole.
  /// - Parameter collections: The names of collections that are known besides those in the file.
  /// - Throws: what reading the files throws; `.notOurStore` and `.newerSchema`.
  static func read(_ source: StoreFile, _ collections: [String]) throws(RepositoryError) -> Salvage {
    let log = try SalvageBytes(source.path + "-wal")
    let main = try SalvageBytes(source.path)
    guard main != nil || log != nil else { throw RepositoryError(.dataMissing, "there is no such file", file: source.path) }
    var salvage = SQLiteSalvage(main ?? SalvageBytes(path: source.path, bytes: []), log)
    if main == nil { salvage.salvage.add(SalvageProblem(source.path, "there is no database: only what its log holds can be saved")) }
    try salvage.checkFormat()
    salvage.run(collections)
    return salvage.salvage
  }

  private init(_ main: SalvageBytes, _ log: SalvageBytes?) {
    let log = log.flatMap { SQLiteLog($0, pageSize: SQLiteImage.pageSize(of: main.bytes)) }
    image = SQLiteImage(main, log)
    salvage.add(main.problems + (log?.problems ?? []))
    isDamaged = salvage.hasLosses || !main.unreadable.isEmpty
  }

  /// Refuses a database of another program, and one of a later format.
  private func checkFormat() throws(RepositoryError) {
    guard let header = image.page(1), header.holds("SQLite format 3\0", at: 0) else { return }
    if header.bigEndian(UInt32.self, at: 68) == 0x4C52_4452, let found = header.bigEndian(Int32.self, at: 60), found > 1, found < 1_000 {
      throw RepositoryError(
        .newerSchema, "the database has a newer format", file: image.file.path, offset: 60, versions: .init(found: Int(found), supported: 1)
      )
    }
  }

  private mutating func run(_ collections: [String]) {
    readSchema()
    for name in collections + namesInBytes() where tables[name] == nil { tables[name] = 0 }
    if tables[Self.store] == nil || tables[Self.store] == 0 { isDamaged = true }
    var row: SQLiteStoreRow?
    if let root = tables[Self.store], root > 0 {
      walk(root) { columns, _ in
        row = SQLiteStoreRow(columns)
        return row != nil ? nil : "the row of the store is damaged"
      }
    }
    for (name, root) in tables.sorted(by: { $0.key < $1.key }) where name != Self.store && root > 0 { walk(table: name, root) }
    if isDamaged { carve() }
    compare(with: row)
  }

  // MARK: The schema

  private mutating func readSchema() {
    var found: [String: Int] = [:]
    var others: Set<String> = []
    walk(1) { columns, _ in
      // The name stands there twice; a row of records that a damaged tree leads to has none.
      guard columns.count == 5, let type = columns[0].text, let name = columns[1].text, columns[2].text != nil,
        let root = columns[3].integer, root >= 0
      else {
        return "a row of the schema is damaged"
      }
      if type == "table", !name.hasPrefix("sqlite_") {
        found[name] = Int(root)
        if !Self.isOfStore(name, columns[4].text ?? "") { others.insert(name) }
      }
      return nil
    }
    (tables, doubtful) = (found, others)
    if found[Self.store] != nil || found[Self.tombstones] != nil { salvage.isRecognised = true }
  }

  /// Whether a statement makes the store's own tables, or that of a collection.
  private static func isOfStore(_ name: String, _ sql: String) -> Bool {
    name == store || name == tombstones
      || sql.hasPrefix("CREATE TABLE \"\(name)\" (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, ")
  }

  /// Returns the names of collections in statements that make tables, wherever these stand.
  private func namesInBytes() -> [String] {
    guard isDamaged else { return [] }
    var names: [String] = []
    for bytes in [image.file.bytes, image.log?.bytes ?? []] {
      var position = 0
      while let found = bytes.offset(of: "CREATE TABLE \"", in: position..<bytes.count) {
        position = found + 14
        let text = String(decoding: bytes[position..<min(position + 200, bytes.count)], as: UTF8.self)
        if let match = text.prefixMatch(of: /([A-Za-z0-9_.\-]{1,64})" \(id TEXT NOT NULL PRIMARY KEY, revision/) {
          names.append(String(match.1))
        }
      }
    }
    return names
  }

  // MARK: Rows

  /// Visits every row of a tree whose page and cell can be read; the body returns what is wrong with a row.
  private mutating func walk(_ root: Int, of table: String? = nil, _ body: (_ columns: [SQLiteColumn], _ place: String) -> String?) {
    var pending = [root]
    while let number = pending.popLast() {
      guard visited.insert(number).inserted else { continue }
      let (path, offset) = image.place(of: number)
      guard let page = SQLitePage(number, of: image) else {
        isDamaged = true
        salvage.add(SalvageProblem(path, offset: offset, page: number, "the page is damaged"))
        continue
      }
      pending += page.children.reversed()
      guard page.kind != .tableInterior else { continue }
      for (index, cell) in page.cells.enumerated() {
        let columns = page.row(cell, of: image, &overflow)
        // Rows of other programs are no loss. Those of a collection with a damaged statement count if their checksum matches. If one does
        // not, the row of the store shows that it is missing.
        if let table, doubtful.contains(table) {
          if let columns { _ = body(columns, path) }
          continue
        }
        if let problem = columns == nil ? "the row cannot be read" : columns.flatMap({ body($0, path) }) {
          isDamaged = true
          let (collection, key) = address(columns, in: table)
          salvage.add(
            SalvageProblem(path, offset: offset + cell, page: number, row: index + 1, collection: collection, key: key, problem))
        }
      }
    }
  }

  /// Returns what looks like the address of a damaged row: a name counts only as that of a table, since damage can put a key in its place.
  private func address(_ columns: [SQLiteColumn]?, in table: String?) -> (String?, RecordKey?) {
    guard let table, table != Self.store, let columns, columns.count == 5, let first = columns[0].text else { return (nil, nil) }
    guard table == Self.tombstones else { return (nil, RecordKey(first)) }
    return (tables[first] == nil ? nil : first, columns[1].text.map { RecordKey($0) })
  }

  private mutating func walk(table: String, _ root: Int) {
    var found: [StoredRecord] = []
    walk(root, of: table) { columns, _ in
      guard let record = table == Self.tombstones ? Self.tombstone(columns) : Self.record(columns, in: table) else {
        return "the row of \(table) does not match its checksum"
      }
      found.append(record)
      return nil
    }
    for record in found { salvage.add(record, age: 0) }
  }

  /// Returns the record of a row if its checksum is right.
  private static func record(_ columns: [SQLiteColumn], in collection: String) -> StoredRecord? {
    guard columns.count == 5, let key = columns[0].bytes, let value = columns[4].bytes else { return nil }
    return record(collection, key, columns[1], columns[2], columns[3], value: Data(value))
  }

  private static func tombstone(_ columns: [SQLiteColumn]) -> StoredRecord? {
    guard columns.count == 5, let collection = columns[0].text, let key = columns[1].bytes else { return nil }
    return record(collection, key, columns[2], columns[3], columns[4], value: nil)
  }

  private static func record(
    _ collection: String, _ key: [UInt8], _ revision: SQLiteColumn, _ version: SQLiteColumn, _ crc: SQLiteColumn, value: Data?
  ) -> StoredRecord? {
    guard let revision = revision.integer, let version = version.integer, let crc = crc.integer, revision > 0,
      (1...Int64(Int32.max)).contains(version)
    else { return nil }
    let record = StoredRecord(
      collection: collection, key: key.withUnsafeBytes { RecordKey(utf8: $0) }, revision: Revision(UInt64(revision)),
      schemaVersion: Int(version),
      value: value)
    return record.checksum == UInt32(truncatingIfNeeded: crc) && record.key.byteCount == key.count ? record : nil
  }

  // MARK: Pages that no tree leads to

  /// Looks through the pages that were not reached, and through the frames of the log behind damage.
  private mutating func carve() {
    let free = image.freePages
    let names = tables.keys.filter { $0 != Self.store && $0 != Self.tombstones }
    var pages: [SQLitePage] = []
    for number in stride(from: 1, through: image.pageCount, by: 1)
    where !visited.contains(number) && !overflow.contains(number) && !free.contains(number) {
      if let page = SQLitePage(number, of: image) { pages.append(page) }
    }
    for (number, range) in image.log?.lost ?? [] {
      if let log = image.log, let page = SQLitePage(number, Array(log.bytes[range])) { pages.append(page) }
    }
    var count = 0
    for page in pages where !page.kind.isTable {
      for cell in page.cells {
        guard let columns = page.row(cell, of: image, &overflow) else { continue }
        let record = Self.tombstone(columns) ?? names.lazy.compactMap { Self.record(columns, in: $0) }.first
        if let record {
          salvage.add(record, age: 0)
          count += 1
        }
      }
    }
    guard count > 0 else { return }
    salvage.add(
      SalvageProblem(
        image.file.path, "\(count) rows are from pages that no table leads to any more: some may be older or deleted ones", isLoss: false))
  }

  // MARK: The row of the store

  /// Compares what was read with what the store says of itself.
  private mutating func compare(with row: SQLiteStoreRow?) {
    guard let row else {
      return salvage.add(
        SalvageProblem(image.file.path, "the row of the store is missing: how many records it had is not known", isLoss: isDamaged))
    }
    salvage.isRecognised = true
    let records = salvage.records
    let isNewest = records.allSatisfy { $0.revision.number <= row.commit }
    salvage.note(commit: row.commit)
    salvage.horizon = max(salvage.horizon, row.tombstonesSince)
    // Later commits need not write the row.
    guard isNewest, records.count != row.records &+ row.tombstones || row.digest != SQLiteStoreRow.digest(of: records) else { return }
    let count = records.count { $0.value != nil }
    salvage.add(
      SalvageProblem(
        image.file.path,
        "expected \(row.records) records and \(row.tombstones) tombstones at commit \(row.commit), found \(count) and "
          + "\(records.count - count): some are missing, or older ones"))
  }
}
