internal import Foundation
internal import Larder

/// The pages of a database file, with those of its log over them, as bytes that nothing is believed of yet.
struct SQLiteImage {
  let file: SalvageBytes
  let log: SQLiteLog?
  /// The number of bytes of a page that hold data.
  let pageSize: Int
  /// The number of pages.
  let pageCount: Int

  init(_ file: SalvageBytes, _ log: SQLiteLog?) {
    self.file = file
    self.log = log
    pageSize = log?.pageSize ?? Self.pageSize(of: file.bytes)
    pageCount = max((file.bytes.count + pageSize - 1) / pageSize, log?.pages.keys.max() ?? 0)
  }

  /// Returns the size of pages as the header has it; the size that Larder gives to every database where that is damaged.
  static func pageSize(of bytes: [UInt8]) -> Int {
    guard let stored = bytes.bigEndian(UInt16.self, at: 16) else { return 4_096 }
    let size = stored == 1 ? 65_536 : Int(stored)
    return size >= 512 && size.nonzeroBitCount == 1 ? size : 4_096
  }

  /// Returns a page, by its number from 1 on; `nil` where there is none, and zeros for what is missing of the last one.
  func page(_ number: Int) -> [UInt8]? {
    guard (1...max(pageCount, 1)).contains(number) else { return nil }
    if let range = log?.pages[number], let log { return Array(log.bytes[range]) }
    let start = (number - 1) * pageSize
    guard start < file.bytes.count else { return nil }
    let page = Array(file.bytes[start..<min(start + pageSize, file.bytes.count)])
    return page + [UInt8](repeating: 0, count: pageSize - page.count)
  }

  /// Returns the place of a page: a file and the offset in it.
  func place(of number: Int) -> (path: String, offset: Int) {
    if let log, let range = log.pages[number] { return (log.path, range.lowerBound) }
    return (file.path, (number - 1) * pageSize)
  }

  /// The pages that are free, as far as the list of them can be followed.
  var freePages: Set<Int> {
    var free: Set<Int> = []
    var trunk = page(1)?.bigEndian(UInt32.self, at: 32).map(Int.init) ?? 0
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
