internal import Foundation
internal import Larder

/// Salvage of a SQLite database: reads its trees page by page, then the pages that no tree leads to.
///
/// SQLite stops at the first page that it cannot read. Here every row is saved that matches its own checksum.
struct SQLiteSalvage {
  private let image: SQLiteImage
  private var salvage = Salvage()
  private var visited: Set<Int> = []
  private var overflow: Set<Int> = []
  private var isDamaged = false
  /// Known tables, with the root page of each.
  ///
  /// The page is 0 if only the name is known.
  private var tables: [String: Int] = [:]
  /// Tables whose `CREATE` statement is not Larder's: those of other programs, and collections whose statement is damaged.
  private var doubtful: Set<String> = []

  private static let store = "larder_store"
  private static let tombstones = "larder_tombstones"

  /// Saves every whole row of a database and its log.
  /// - Parameter collections: Names of collections to look for besides those in the file.
  /// - Throws: `.newerSchema` for a later version of the format, `.dataMissing` if there is neither database nor log, and the errors of
  ///   reading the files.
  static func read(_ source: StoreFile, _ collections: [String]) throws(RepositoryError) -> Salvage {
    let log = try SalvageBytes(source.path + "-wal")
    let main = try SalvageBytes(source.path)
    guard main != nil || log != nil else { throw RepositoryError(.dataMissing, "there is no such file", file: source.path) }
    func attempt(reserved: Int? = nil) throws(RepositoryError) -> SQLiteSalvage {
      var attempt = SQLiteSalvage(main ?? SalvageBytes(path: source.path, bytes: []), log, reserved: reserved)
      if main == nil { attempt.salvage.add(SalvageProblem(source.path, "there is no database: only what its log holds can be saved")) }
      try attempt.checkFormat()
      attempt.run(collections)
      return attempt
    }
    let first = try attempt()
    guard first.image.usableSize < first.image.pageSize, first.salvage.hasLosses else { return first.salvage }
    // A damaged number of reserved bytes makes all rows with overflow pages unreadable. Larder itself reserves none.
    let second = try attempt(reserved: 0)
    return second.salvage.records.count > first.salvage.records.count ? second.salvage : first.salvage
  }

  private init(_ main: SalvageBytes, _ log: SalvageBytes?, reserved: Int?) {
    let log = log.flatMap { SQLiteLog($0, pageSize: SQLiteImage.pageSize(of: main.bytes)) }
    image = SQLiteImage(main, log, reserved: reserved)
    salvage.add(main.problems + (log?.problems ?? []))
    isDamaged = salvage.hasLosses || !main.unreadable.isEmpty
  }

  /// Checks that the database has a version of the format that this tool reads.
  private func checkFormat() throws(RepositoryError) {
    guard let header = image.page(1), header.holds("SQLite format 3\0", at: 0) else { return }
    // The bytes at 68 are "LRDR". A version of 1,000 or more is taken for damage and not for a later format.
    if header.bigEndian(UInt32.self, at: 68) == 0x4C52_4452, let found = header.bigEndian(Int32.self, at: 60), found > 1, found < 1_000 {
      throw RepositoryError(
        .newerSchema, "the database has a newer format", file: image.file.path, offset: 60, versions: .init(found: Int(found), supported: 1)
      )
    }
  }

  private mutating func run(_ collections: [String]) {
    readSchema()
    // A row's checksum covers the name of its collection. Without the name, no row of it can be verified.
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
    // Pages outside of all trees may have old or deleted rows, so they are read only if rows of the trees may be lost.
    if isDamaged { carve() }
    compare(with: row)
  }

  // MARK: The schema

  private mutating func readSchema() {
    var found: [String: Int] = [:]
    var others: Set<String> = []
    walk(1) { columns, _ in
      // A row of the schema has two names. A record or tombstone that a damaged tree leads to has no text in the second place.
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

  /// Returns true for the store's own tables, and for a collection whose statement is that of the format.
  private static func isOfStore(_ name: String, _ sql: String) -> Bool {
    name == store || name == tombstones
      || sql.hasPrefix("CREATE TABLE \"\(name)\" (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, ")
  }

  /// Returns the names of collections in `CREATE TABLE` statements anywhere in the files.
  private func namesInBytes() -> [String] {
    guard isDamaged else { return [] }
    var names: [String] = []
    for bytes in [image.file.bytes, image.log?.bytes ?? []] {
      var position = 0
      while let found = bytes.offset(of: "CREATE TABLE \"", in: position..<bytes.count) {
        // The text that was found has 14 bytes.
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

  /// Calls `body` with every readable row of a tree.
  ///
  /// It returns the problem of a row, or `nil` for a whole one.
  private mutating func walk(_ root: Int, of table: String? = nil, _ body: (_ columns: [SQLiteColumn], _ place: String) -> String?) {
    var pending = [root]
    while let number = pending.popLast() {
      // Damaged pages may lead to one page twice, or in a circle.
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
        // Rows of other programs are no loss. A collection with a damaged statement is treated alike: its whole rows are saved, and the
        // row of the store shows how many are missing.
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

  /// Returns the collection and key of a damaged row.
  ///
  /// A collection is returned only if there is such a table, since damage can move a key to its place.
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
    // Added after the walk, which has exclusive access to `self`.
    for record in found { salvage.add(record, age: 0) }
  }

  /// Returns the record of a row, or `nil` if it does not match its checksum.
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

  /// Saves rows from pages that no tree leads to, and from frames of the log after damage.
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
    // Tables of a store are `WITHOUT ROWID`, and SQLite keeps those in index pages.
    for page in pages where !page.kind.isTable {
      for cell in page.cells {
        guard let columns = page.row(cell, of: image, &overflow) else { continue }
        // The page does not name its table, so each collection is tried until the checksum matches.
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
        image.file.path, "\(counted(count, "row")) from pages that no table leads to any more: some may be older or deleted ones",
        isLoss: false))
  }

  // MARK: The row of the store

  /// Compares the saved rows with the counts and the digest in the row of `larder_store`.
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
    // The row describes the commit at which it was written. Later commits need not write it, and then it proves nothing.
    guard isNewest, records.count != row.records &+ row.tombstones || row.digest != SQLiteStoreRow.digest(of: records) else { return }
    let count = records.count { $0.value != nil }
    salvage.add(
      SalvageProblem(
        image.file.path,
        "expected \(counted(row.records, "record")) and \(counted(row.tombstones, "tombstone")) at commit \(row.commit), found "
          + "\(count) and \(records.count - count): some are missing, or older ones"))
  }
}
