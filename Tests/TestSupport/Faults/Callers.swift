internal import Foundation

/// The callers of a function, as offsets in the program's file: what `llvm-symbolizer` and the file's own table of symbols know them by.
enum Callers {
  private typealias Backtrace = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32
  private static let backtrace: Backtrace? = dlsym(nil, "backtrace").map { unsafeBitCast($0, to: Backtrace.self) }

  /// The addresses at which the program is in memory; none where the system does not tell.
  private static let image: Range<UInt> = {
    let program = ProcessInfo.processInfo.arguments.first ?? ""
    let maps = FileManager.default.contents(atPath: "/proc/self/maps") ?? Data()
    let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? program
    let ranges = String(decoding: maps, as: UTF8.self).split(separator: "\n").filter { $0.hasSuffix(path) }.map { line in
      line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
    }
    return (ranges.first?.first ?? 0)..<(ranges.last?.last ?? 0)
  }()

  /// Returns the callers in the program itself, the nearest first.
  static func offsets() -> [UInt] {
    guard let backtrace else { return [] }
    let depth = 24
    let frames = [UnsafeMutableRawPointer?](unsafeUninitializedCapacity: depth) { buffer, count in
      count = buffer.baseAddress.map { Int(backtrace($0, Int32(depth))) } ?? 0
    }
    return frames.compactMap { frame in
      let address = UInt(bitPattern: frame)
      return image.contains(address) ? address - image.lowerBound : nil
    }
  }

  /// Returns the place that calls the seam: the first caller in the code of the products; `nil` where the system does not tell.
  static func site() -> UInt? {
    // A return address is behind its call.
    offsets().first { isOfProducts($0 - 1) }
  }

  // MARK: Symbols

  private static func isOfProducts(_ offset: UInt) -> Bool {
    var (low, high) = (0, products.count)
    while low < high {
      let middle = (low + high) / 2
      if products[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
    }
    return low < products.count && products[low].contains(offset)
  }

  /// The places of the products' code in the program's file, in order; none where that is not a file of ELF.
  private static let products: [Range<UInt>] = {
    guard let program = try? Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe"), options: .alwaysMapped) else { return [] }
    let prefixes = ["$s6Larder", "$s11LarderBlobs", "$s12LarderSQLite"]
    return program.withUnsafeBytes { file in code(of: prefixes, in: file) }.sorted { $0.lowerBound < $1.lowerBound }
  }()

  /// Returns where functions are whose names begin with one of some prefixes, as a file of ELF with 64 bits tells.
  private static func code(of prefixes: [String], in file: UnsafeRawBufferPointer) -> [Range<UInt>] {
    guard let base = file.baseAddress, file.count > 64, file.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2]) else { return [] }
    func number<Number: FixedWidthInteger>(_ offset: Int, _: Number.Type) -> Int {
      Int(file.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    let (sections, size) = (number(0x28, UInt64.self), number(0x3A, UInt16.self))
    let headers = (0..<number(0x3C, UInt16.self)).map { sections + $0 * size }
    // The table of all symbols, and that of their names.
    guard let table = headers.first(where: { number($0 + 4, UInt32.self) == 2 }) else { return [] }
    let names = base + number(headers[number(table + 0x28, UInt32.self)] + 0x18, UInt64.self)
    let start = number(table + 0x18, UInt64.self)
    let texts = prefixes.map { Array($0.utf8) }
    var found: [Range<UInt>] = []
    for entry in stride(from: start, to: start + number(table + 0x20, UInt64.self), by: 24) {
      // Functions alone.
      guard (base + entry + 4).load(as: UInt8.self) & 0xF == 2 else { continue }
      let name = names + Int((base + entry).loadUnaligned(as: UInt32.self))
      // A thunk that changes how a closure is called is named after the closure's types, wherever it is.
      guard texts.contains(where: { memcmp(name, $0, $0.count) == 0 }),
        !String(cString: name.assumingMemoryBound(to: CChar.self)).hasSuffix("TR")
      else { continue }
      let address = UInt((base + entry).loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      found.append(address..<(address + UInt((base + entry).loadUnaligned(fromByteOffset: 16, as: UInt64.self))))
    }
    return found
  }
}
