internal import Foundation
@_spi(Inspection) internal import Larder

/// Import source: a store of Bodega or Boutique, which is a directory with one file for each object, or a SQLite database.
///
/// Names of files and keys of rows are hashes of the objects' ids. The ids themselves come from the objects.
enum BodegaSource {
  /// Reads all objects of the store.
  /// - Throws: `.decodingFailed` with the file or row if an object is not JSON, `.corrupted` for a database with a damaged page or row.
  static func read(_ path: String) throws(RepositoryError) -> [ImportedRecord] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw RepositoryError(.dataMissing, "there is no such directory or file", file: path)
    }
    return isDirectory.boolValue ? try readDirectory(path) : try readDatabase(path)
  }

  private static func readDirectory(_ path: String) throws(RepositoryError) -> [ImportedRecord] {
    let fileSystem = POSIXFileSystem()
    var records: [ImportedRecord] = []
    // A directory lists its files in any order. Sorted, `--duplicates first` chooses the same object on every run.
    for name in try (fileSystem.entries(of: path) ?? []).sorted() where !name.hasPrefix(".") {
      let file = path + "/" + name
      // Bodega ignores directories too. Opening a pipe would block until a writer appears.
      guard try fileSystem.status(of: file)?.kind == .file else { continue }
      records.append(try record(Data(try ImportBytes.read(file)), file: file, line: nil))
    }
    return records
  }

  private static func record(_ bytes: Data, file: String, line: Int?) throws(RepositoryError) -> ImportedRecord {
    do throws(RepositoryError) { return ImportedRecord(value: try JSONValue(json: bytes), file: file, line: line) } catch {
      throw RepositoryError(
        error.code, (line.map { "row \($0): " } ?? "") + error.message, file: file, offset: line == nil ? error.offset : nil)
    }
  }

  private static func readDatabase(_ path: String) throws(RepositoryError) -> [ImportedRecord] {
    // The pages are parsed here, because SQLite would write to the source: it folds the log of a killed app and makes files.
    guard let main = try SalvageBytes(path), main.bytes.holds("SQLite format 3\0", at: 0) else {
      throw RepositoryError(.notOurStore, "expected a directory or a SQLite database, found another file", file: path, offset: 0)
    }
    // A rollback journal holds the pages that an interrupted transaction has overwritten. Without SQLite they are not put back.
    if let journal = try POSIXFileSystem().status(of: path + "-journal"), journal.size > 0 {
      throw RepositoryError(
        .unsupported, "expected a database that was closed, found its journal: open it once with its app", file: path + "-journal")
    }
    let log = try SalvageBytes(path + "-wal").flatMap { SQLiteLog($0, pageSize: SQLiteImage.pageSize(of: main.bytes)) }
    let image = SQLiteImage(main, log)
    // The schema is the table whose tree begins at page 1 (SQLite's file format, section 2.6).
    let schema = try rows(1, of: image)
    guard let row = schema.first(where: { $0.count == 5 && $0[0].text == "table" && $0[1].text == "data" }), let root = row[3].integer,
      let sql = row[4].text
    else { throw RepositoryError(.notOurStore, "expected the table `data` of Bodega, found none", file: path) }
    let isKnown = sql.contains("\"key\"") && (sql.contains("\"value\"") || sql.contains("\"data\"")) && sql.contains("\"createdAt\"")
    guard isKnown else {
      throw RepositoryError(
        .notOurStore, "expected the columns key, value, createdAt and updatedAt in the table `data`, found others", file: path)
    }
    var records: [ImportedRecord] = []
    for (index, row) in try rows(Int(root), of: image).enumerated() {
      // Column 0 is the hash of the id.
      guard row.count >= 2, let bytes = row[1].bytes else {
        throw RepositoryError(.decodingFailed, "row \(index + 1): expected an object as JSON, found another value", file: path)
      }
      records.append(try record(Data(bytes), file: path, line: index + 1))
    }
    return records
  }

  /// Returns all rows of the table whose B-tree begins at page `root`.
  /// - Throws: `.corrupted` for a page or a row that cannot be read. A partial import would look complete.
  private static func rows(_ root: Int, of image: SQLiteImage) throws(RepositoryError) -> [[SQLiteColumn]] {
    var (pending, visited, overflow): ([Int], Set<Int>, Set<Int>) = ([root], [], [])
    var rows: [[SQLiteColumn]] = []
    while let number = pending.popLast() {
      // A damaged page may lead back to an earlier one, and the loop would never end.
      guard visited.insert(number).inserted, let page = SQLitePage(number, of: image), page.kind.isTable else {
        throw RepositoryError(
          .corrupted, "page \(number) of the database is damaged: restore a backup", file: image.file.path,
          offset: UInt64((number - 1) * image.pageSize))
      }
      // Pages are taken from the end of `pending`. Reversed, they come in the order of row ids.
      pending += page.children.reversed()
      for cell in page.cells where page.kind == .tableLeaf {
        guard let row = page.row(cell, of: image, &overflow) else {
          throw RepositoryError(
            .corrupted, "a row on page \(number) of the database is damaged: restore a backup", file: image.file.path,
            offset: UInt64((number - 1) * image.pageSize + cell))
        }
        rows.append(row)
      }
    }
    return rows
  }
}
