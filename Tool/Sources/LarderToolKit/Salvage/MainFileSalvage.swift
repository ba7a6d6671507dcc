internal import Foundation
@_spi(Inspection) internal import Larder

/// The salvage of a JSON main file, line by line.
struct MainFileSalvage {
  private let source: SalvageBytes
  private var bytes: [UInt8] { source.bytes }
  private(set) var salvage: Salvage
  /// The header; `nil` where it is damaged.
  private(set) var header: JSONFileParts.Header?
  private var lineCount: UInt64 = 0
  private var hash = SealHash()
  /// The lines, or what damage has made of them, that were not saved whole.
  private var damaged: [(range: Range<Int>, number: Int, error: RepositoryError)] = []
  private var seal: (count: UInt64, hash: String)?

  /// Reads everything that is whole, and adds it to what was saved.
  /// - Throws: `.newerSchema` and `.notOurStore`, where nothing here may be understood.
  init(_ source: SalvageBytes, into salvage: Salvage) throws(RepositoryError) {
    self.source = source
    self.salvage = salvage
    self.salvage.add(source.problems)
    let start = try readHeader()
    let end = readLines(from: start)
    for part in damaged { resynchronise(part.range, part.number, part.error) }
    compareSeal(end)
  }

  /// Returns the offset of the first line.
  private mutating func readHeader() throws(RepositoryError) -> Int {
    do throws(RepositoryError) {
      let header = try JSONFileParts.header(of: Data(bytes.prefix(4_096)), file: source.path)
      self.header = header
      salvage.isRecognised = true
      salvage.note(commit: header.commit)
      salvage.horizon = max(salvage.horizon, header.tombstonesSince)
      hash.add(header.checksum)
      return header.byteCount
    } catch {
      if error.code == .newerSchema { throw error }
      salvage.add(
        SalvageProblem(
          source.path, offset: error.offset.map(Int.init), line: 1,
          "\(error.message): the store's identity and the time of forgotten deletions are not known", isLoss: false))
      return 0
    }
  }

  /// Reads every line that is whole, and notes the others.
  /// - Returns: The offset behind the seal, or the end of the file.
  private mutating func readLines(from start: Int) -> Int {
    var (position, number) = (start, start == 0 ? 1 : 2)
    while position < bytes.count {
      let lineFeed = bytes.offset(of: "\n", in: position..<bytes.count)
      let end = lineFeed ?? bytes.count
      defer { (position, number) = (end + 1, number + 1) }
      if readSeal(at: position, end) { return end + 1 }
      let line = position..<(end > position && bytes[end - 1] == UInt8(ascii: ",") ? end - 1 : end)
      // The last line of a file that was cut off has no end that could be trusted, but it has a checksum.
      do throws(RepositoryError) { try save(line) } catch { damaged.append((position..<end, number, error)) }
    }
    return bytes.count
  }

  private mutating func save(_ line: Range<Int>) throws(RepositoryError) {
    let record = try JSONFileParts.record(ofLine: Data(bytes[line]), file: source.path, at: line.lowerBound)
    lineCount += 1
    hash.add(record.checksum)
    salvage.add(record, age: header?.commit ?? 0)
  }

  /// Reads the seal where it is at an offset; `false` where something else is.
  private mutating func readSeal(at position: Int, _ end: Int) -> Bool {
    guard bytes.holds("],\"count\":", at: position) else { return false }
    let text = String(decoding: bytes[position..<end], as: UTF8.self)
    guard let match = text.wholeMatch(of: /\],"count":([0-9]+),"hash":"([0-9a-f]{16})"\}/), let count = UInt64(match.1) else {
      return false
    }
    seal = (count, String(match.2))
    return true
  }

  // MARK: Damage

  /// Saves the whole lines within a part in which the end of one was damaged, so that it runs into the next.
  private mutating func resynchronise(_ range: Range<Int>, _ number: Int, _ error: RepositoryError) {
    // The first line of a file whose header is damaged is that header, which was reported.
    let isHeader = number == 1 && header == nil
    var isSaved = false
    var position = range.lowerBound
    var lastEnd: Int?
    while let start = bytes.offset(of: "{\"in\":\"", in: position..<range.upperBound) {
      position = start + 1
      guard start == range.lowerBound || isBeginning(start, after: lastEnd),
        let end = JSONExtent.end(of: start, in: bytes, before: range.upperBound)
      else { continue }
      do throws(RepositoryError) {
        try save(start..<end)
        (position, lastEnd) = (end, end)
        if start == range.lowerBound { isSaved = true }
      } catch { continue }
    }
    if isHeader || isSaved { return }
    let (collection, key) = address(at: range)
    salvage.add(
      SalvageProblem(
        source.path, offset: error.offset.map(Int.init) ?? range.lowerBound, line: number, collection: collection, key: key, error.message))
  }

  /// Whether a record may begin here, and not one that is a part of another one's value: what is before it could not be in a value, or it
  /// is the place of a line feed behind a record.
  private func isBeginning(_ start: Int, after lastEnd: Int?) -> Bool {
    let before = bytes[start - 1]
    return lastEnd == start - 2
      || !(before == UInt8(ascii: ",") || before == UInt8(ascii: "[") || before == UInt8(ascii: ":") || before == 0x20
        || before == 0x09 || before == 0x0D)
  }

  /// Returns what looks like the address of a damaged line.
  private func address(at range: Range<Int>) -> (String?, RecordKey?) {
    let text = String(decoding: bytes[range.prefix(2_048)], as: UTF8.self)
    guard let match = text.prefixMatch(of: /\{"in":"([A-Za-z0-9_.\-]{1,64})","id":"([^"\\]{0,1024})",/) else { return (nil, nil) }
    return (String(match.1), RecordKey(String(match.2)))
  }

  /// Compares the seal with what was read; it guards the number and the order of the lines.
  private mutating func compareSeal(_ end: Int) {
    guard let seal else {
      return salvage.add(
        SalvageProblem(source.path, offset: bytes.count, "the end of the file is missing or damaged: records behind it may be lost"))
    }
    if lineCount < seal.count {
      let count = seal.count - lineCount
      salvage.add(
        SalvageProblem(source.path, "\(count) of \(seal.count) records and tombstones of the file were not found whole"))
    } else if header != nil, seal.hash != hash.text, damaged.isEmpty {
      salvage.add(
        SalvageProblem(source.path, "the lines are whole, but not those that were sealed: some may be older ones"))
    }
    if end < bytes.count {
      salvage.add(
        SalvageProblem(
          source.path, offset: end, "\(bytes.count - end) bytes behind the end of the store were left out", isLoss: false))
    }
  }

  /// Whether something of the file may be missing.
  var hasLosses: Bool { salvage.problems.contains { $0.file == source.path && $0.isLoss } }
}

/// The hash of a main file's seal: FNV-1a over the checksums of the header and of the lines.
private struct SealHash {
  private var value: UInt64 = 0xCBF2_9CE4_8422_2325

  var text: String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  mutating func add(_ checksum: UInt32) {
    for shift in stride(from: 0, to: 32, by: 8) { value = (value ^ UInt64(checksum >> shift & 0xFF)) &* 0x100_0000_01B3 }
  }
}
