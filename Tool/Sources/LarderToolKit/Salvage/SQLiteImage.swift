internal import Foundation
internal import Larder

/// Pages of a database file, replaced by the newer ones of its write-ahead log.
///
/// Nothing in them was checked yet.
struct SQLiteImage {
  let file: SalvageBytes
  let log: SQLiteLog?
  /// Size of a page in bytes.
  let pageSize: Int
  /// Size of the part of a page that SQLite uses, without the bytes that the header reserves at the end.
  let usableSize: Int
  /// Number of pages, those of the log included.
  let pageCount: Int

  /// - Parameter reserved: Number of reserved bytes. `nil` to read it from the header.
  init(_ file: SalvageBytes, _ log: SQLiteLog?, reserved: Int? = nil) {
    self.file = file
    self.log = log
    pageSize = log?.pageSize ?? Self.pageSize(of: file.bytes)
    let header = log?.pages[1].flatMap { log?.bytes[$0] } ?? file.bytes[...]
    usableSize = pageSize - (reserved ?? Self.reserved(in: header, pageSize))
    // Pages of commits that were not folded yet may lie behind the end of the file.
    pageCount = max((file.bytes.count + pageSize - 1) / pageSize, log?.pages.keys.max() ?? 0)
  }

  /// Returns the page size from the header, or 4,096, the size in every database of Larder, if the header is damaged.
  static func pageSize(of bytes: [UInt8]) -> Int {
    guard let stored = bytes.bigEndian(UInt16.self, at: 16) else { return 4_096 }
    // The field has two bytes, and 1 stands for 65,536 (SQLite's file format, section 1.3.2).
    let size = stored == 1 ? 65_536 : Int(stored)
    return size >= 512 && size.nonzeroBitCount == 1 ? size : 4_096
  }

  /// Returns the number of reserved bytes from the header in page 1.
  ///
  /// 0 if the header is damaged. Extensions of SQLite keep checksums or keys in these bytes, and Larder reserves none.
  private static func reserved(in header: ArraySlice<UInt8>, _ pageSize: Int) -> Int {
    guard header.starts(with: "SQLite format 3\0".utf8), header.count > 20 else { return 0 }
    let count = Int(header[header.startIndex + 20])
    // At least 480 bytes of a page are used (SQLite's file format, section 1.3.4).
    return pageSize - count >= 480 ? count : 0
  }

  /// Returns the page with a number, counted from 1.
  ///
  /// `nil` if there is no such page. A last page that was cut is filled up with zeros.
  func page(_ number: Int) -> [UInt8]? {
    guard (1...max(pageCount, 1)).contains(number) else { return nil }
    // The log is newer than the database file.
    if let range = log?.pages[number], let log { return Array(log.bytes[range]) }
    let start = (number - 1) * pageSize
    guard start < file.bytes.count else { return nil }
    let page = Array(file.bytes[start..<min(start + pageSize, file.bytes.count)])
    return page + [UInt8](repeating: 0, count: pageSize - page.count)
  }

  /// Returns the file of a page and its offset there, for reports.
  func place(of number: Int) -> (path: String, offset: Int) {
    if let log, let range = log.pages[number] { return (log.path, range.lowerBound) }
    return (file.path, (number - 1) * pageSize)
  }

  /// Numbers of the free pages, as far as the list of them is readable.
  var freePages: Set<Int> {
    var free: Set<Int> = []
    var trunk = page(1)?.bigEndian(UInt32.self, at: 32).map(Int.init) ?? 0
    // A damaged list may lead back to an earlier page, or have an absurd count.
    while trunk != 0, !free.contains(trunk), let bytes = page(trunk), let next = bytes.bigEndian(UInt32.self, at: 0),
      let count = bytes.bigEndian(UInt32.self, at: 4), Int(count) <= pageSize / 4
    {
      free.insert(trunk)
      for index in 0..<Int(count) { if let leaf = bytes.bigEndian(UInt32.self, at: 8 + 4 * index) { free.insert(Int(leaf)) } }
      trunk = Int(next)
    }
    return free
  }
}
