/// Page of a B-tree: its cells, and the pages below it.
struct SQLitePage {
  /// Kinds of B-tree pages, by the first byte of the page's header.
  enum Kind: UInt8 {
    case indexInterior = 2
    case tableInterior = 5
    case indexLeaf = 10
    case tableLeaf = 13

    var isInterior: Bool { self == .indexInterior || self == .tableInterior }
    var isTable: Bool { self == .tableInterior || self == .tableLeaf }
  }

  let kind: Kind
  let number: Int
  private let bytes: [UInt8]
  /// Offsets of the cells.
  ///
  /// In a damaged page they may lie outside of it.
  let cells: [Int]
  private let start: Int

  /// Parses the header of a page.
  ///
  /// Returns `nil` if it is not a page of a B-tree.
  init?(_ number: Int, of image: SQLiteImage) {
    guard let bytes = image.page(number) else { return nil }
    self.init(number, bytes)
  }

  init?(_ number: Int, _ bytes: [UInt8]) {
    // The first 100 bytes of page 1 are the header of the database.
    start = number == 1 ? 100 : 0
    guard start < bytes.count, let kind = Kind(rawValue: bytes[start]), let count = bytes.bigEndian(UInt16.self, at: start + 3) else {
      return nil
    }
    let header = start + (kind.isInterior ? 12 : 8)
    // The count comes from a page that may be damaged. The offsets of the cells must lie within the page.
    guard header + 2 * Int(count) <= bytes.count else { return nil }
    self.kind = kind
    self.number = number
    self.bytes = bytes
    cells = (0..<Int(count)).map { Int(bytes.bigEndian(UInt16.self, at: header + 2 * $0) ?? 0) }
  }

  /// Numbers of the pages below, in order.
  ///
  /// Empty for a leaf.
  var children: [Int] {
    guard kind.isInterior else { return [] }
    // The header of an interior page has the last child, and each cell has the one before its key.
    let right = bytes.bigEndian(UInt32.self, at: start + 8)
    return (cells.map { bytes.bigEndian(UInt32.self, at: $0) } + [right]).compactMap { $0.map(Int.init) }
  }

  /// Returns the columns of a cell, including the part of its payload on overflow pages.
  ///
  /// `nil` if the cell is damaged or has no columns.
  func row(_ cell: Int, of image: SQLiteImage, _ overflow: inout Set<Int>) -> [SQLiteColumn]? {
    // Interior pages of a table have row ids only. Their rows are in the leaves.
    guard cell >= start + 8, kind != .tableInterior else { return nil }
    // A cell of an interior page begins with the number of the page below it.
    var position = cell + (kind == .indexInterior ? 4 : 0)
    guard let size = bytes.varint(at: &position).map(Int.init(truncatingIfNeeded:)), size > 0, size < 1 << 31 else { return nil }
    // The row id is only stepped over, because no table that is read here has its key there.
    if kind == .tableLeaf, bytes.varint(at: &position) == nil { return nil }
    // The formulas are from SQLite's file format, section 1.6.
    let usable = image.usableSize
    let most = kind.isTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
    let least = (usable - 12) * 32 / 255 - 23
    guard size > most else {
      guard position + size <= usable else { return nil }
      return SQLiteColumn.columns(of: Array(bytes[position..<(position + size)]))
    }
    let rest = least + (size - least) % (usable - 4)
    let local = rest <= most ? rest : least
    guard position + local + 4 <= usable, var next = bytes.bigEndian(UInt32.self, at: position + local).map(Int.init) else { return nil }
    var payload = Array(bytes[position..<(position + local)])
    var visited: Set<Int> = []
    while payload.count < size {
      // A damaged chain may lead back to an earlier page, and the payload would repeat.
      guard next > 0, visited.insert(next).inserted, let page = image.page(next) else { return nil }
      payload += page[4..<min(usable, 4 + size - payload.count)]
      next = page.bigEndian(UInt32.self, at: 0).map(Int.init) ?? 0
    }
    overflow.formUnion(visited)
    return SQLiteColumn.columns(of: payload)
  }
}

/// Value of one column of a row.
///
/// Texts, blobs and floating-point numbers are all kept as bytes.
enum SQLiteColumn: Equatable {
  case null
  case integer(Int64)
  case bytes([UInt8])

  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
  var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  /// Parses the columns of a row's payload.
  ///
  /// Returns `nil` if it is damaged.
  static func columns(of payload: [UInt8]) -> [SQLiteColumn]? {
    var position = 0
    guard let size = payload.varint(at: &position).map(Int.init(truncatingIfNeeded:)), size >= position, size <= payload.count else {
      return nil
    }
    var types: [UInt64] = []
    while position < size {
      guard let type = payload.varint(at: &position) else { return nil }
      types.append(type)
    }
    var columns: [SQLiteColumn] = []
    position = size
    for type in types {
      let count: Int
      switch type {
      // Null, 0 and 1 are given by the type alone, without bytes (SQLite's file format, section 2.1).
      case 0, 8, 9: count = 0
      case 1...4: count = Int(type)
      case 5: count = 6
      case 6, 7: count = 8
      // Reserved for SQLite's own use, and never in a file.
      case 10, 11: return nil
      default: count = Int(truncatingIfNeeded: (type - 12) / 2)
      }
      guard count >= 0, count <= payload.count - position else { return nil }
      let part = payload[position..<(position + count)]
      position += count
      switch type {
      case 0: columns.append(.null)
      case 8, 9: columns.append(.integer(Int64(type) - 8))
      case 1...6:
        // Integers have 1 to 8 bytes in two's complement, so the sign bit of the first one is extended.
        let isNegative = (part.first ?? 0) & 0x80 != 0
        columns.append(.integer(part.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }))
      default: columns.append(.bytes(Array(part)))
      }
    }
    return columns
  }
}

extension [UInt8] {
  /// Reads a variable-length integer of SQLite.
  ///
  /// Returns `nil` if the bytes end within it.
  fileprivate func varint(at position: inout Int) -> UInt64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      // The ninth byte has eight bits of the number, and no bit that continues it.
      if index == 8 { return value << 8 | UInt64(byte) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
