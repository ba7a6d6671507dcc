/// One page of a tree: its cells, and the pages below it.
struct SQLitePage {
  /// The kinds of pages of trees.
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
  /// The offsets of the cells, those included that lie outside of the page.
  let cells: [Int]
  private let start: Int

  /// Reads the header of a page; `nil` where it is none of a tree.
  init?(_ number: Int, of image: SQLiteImage) {
    guard let bytes = image.page(number) else { return nil }
    self.init(number, bytes)
  }

  init?(_ number: Int, _ bytes: [UInt8]) {
    start = number == 1 ? 100 : 0
    guard start < bytes.count, let kind = Kind(rawValue: bytes[start]), let count = bytes.bigEndian(UInt16.self, at: start + 3) else {
      return nil
    }
    let header = start + (kind.isInterior ? 12 : 8)
    guard header + 2 * Int(count) <= bytes.count else { return nil }
    self.kind = kind
    self.number = number
    self.bytes = bytes
    cells = (0..<Int(count)).map { Int(bytes.bigEndian(UInt16.self, at: header + 2 * $0) ?? 0) }
  }

  /// The pages below, in order; none of a leaf.
  var children: [Int] {
    guard kind.isInterior else { return [] }
    let right = bytes.bigEndian(UInt32.self, at: start + 8)
    return (cells.map { bytes.bigEndian(UInt32.self, at: $0) } + [right]).compactMap { $0.map(Int.init) }
  }

  /// Returns the columns of a cell, with what of it lies on other pages; `nil` where it is damaged, or has none.
  func row(_ cell: Int, of image: SQLiteImage, _ overflow: inout Set<Int>) -> [SQLiteColumn]? {
    guard cell >= start + 8, kind != .tableInterior else { return nil }
    var position = cell + (kind == .indexInterior ? 4 : 0)
    guard let size = bytes.varint(at: &position).map(Int.init(truncatingIfNeeded:)), size > 0, size < 1 << 31 else { return nil }
    if kind == .tableLeaf, bytes.varint(at: &position) == nil { return nil }
    let usable = bytes.count
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
      guard next > 0, visited.insert(next).inserted, let page = image.page(next) else { return nil }
      payload += page[4..<min(page.count, 4 + size - payload.count)]
      next = page.bigEndian(UInt32.self, at: 0).map(Int.init) ?? 0
    }
    overflow.formUnion(visited)
    return SQLiteColumn.columns(of: payload)
  }
}

/// A column of a row.
enum SQLiteColumn: Equatable {
  case null
  case integer(Int64)
  case bytes([UInt8])

  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
  var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  /// Reads the columns of a record; `nil` where it is damaged.
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
      case 0, 8, 9: count = 0
      case 1...4: count = Int(type)
      case 5: count = 6
      case 6, 7: count = 8
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
        let isNegative = (part.first ?? 0) & 0x80 != 0
        columns.append(.integer(part.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }))
      default: columns.append(.bytes(Array(part)))
      }
    }
    return columns
  }
}

extension [UInt8] {
  /// Reads a number of variable length; `nil` where the bytes end before it does.
  fileprivate func varint(at position: inout Int) -> UInt64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      if index == 8 { return value << 8 | UInt64(byte) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
