internal import Foundation
@_spi(Inspection) internal import Larder

/// Salvage of a JSON main file, line by line.
///
/// Each line has one record with its checksum.
struct MainFileSalvage {
  private let source: SalvageBytes
  private var bytes: [UInt8] { source.bytes }
  private(set) var salvage: Salvage
  /// Header of the main file.
  ///
  /// `nil` if it is damaged.
  private(set) var header: JSONFileParts.Header?
  private var lineCount: UInt64 = 0
  private var hash = SealHash()
  /// Parts of the file between line feeds that do not have exactly one whole record.
  private var damaged: [(range: Range<Int>, number: Int, error: RepositoryError)] = []
  private var seal: (count: UInt64, hash: String)?

  /// Reads the main file, and adds its records and problems to a salvage.
  /// - Throws: `.newerSchema` for a later version of the format.
  init(_ source: SalvageBytes, into salvage: Salvage) throws(RepositoryError) {
    self.source = source
    self.salvage = salvage
    self.salvage.add(source.problems)
    let start = try readHeader()
    let end = readLines(from: start)
    // Only after the whole lines, whose order the hash of the seal depends on.
    for part in damaged { resynchronise(part.range, part.number, part.error) }
    compareSeal(end)
  }

  /// Reads the header.
  ///
  /// Returns the offset of the first line, or 0 if the header is damaged.
  private mutating func readHeader() throws(RepositoryError) -> Int {
    do throws(RepositoryError) {
      let header = try JSONFileParts.header(of: Data(bytes.prefix(4_096)), file: source.path)
      self.header = header
      salvage.isRecognised = true
      salvage.note(commit: header.commit)
      salvage.horizon = max(salvage.horizon, header.tombstonesSince)
      // The seal's hash begins with the header, and goes on with the lines in order.
      hash.add(header.checksum)
      return header.byteCount
    } catch {
      // A later format may give the same bytes another meaning, so nothing is saved from it.
      if error.code == .newerSchema { throw error }
      salvage.add(
        SalvageProblem(
          source.path, offset: error.offset.map(Int.init), line: 1,
          "\(error.message): the store's identity and the time of forgotten deletions are not known", isLoss: false))
      return 0
    }
  }

  /// Saves every whole line, and collects the others in `damaged`.
  /// - Returns: Offset after the seal (the file's last line), or the end of the file.
  private mutating func readLines(from start: Int) -> Int {
    var (position, number) = (start, start == 0 ? 1 : 2)
    while position < bytes.count {
      let lineFeed = bytes.offset(of: "\n", in: position..<bytes.count)
      let end = lineFeed ?? bytes.count
      defer { (position, number) = (end + 1, number + 1) }
      if readSeal(at: position, end) { return end + 1 }
      // Every line but the last ends with a comma, which is no part of the record.
      let line = position..<(end > position && bytes[end - 1] == UInt8(ascii: ",") ? end - 1 : end)
      // A file that was cut off may end within a line, and only the checksum shows whether the line is whole.
      do throws(RepositoryError) { try save(line) } catch { damaged.append((position..<end, number, error)) }
    }
    return bytes.count
  }

  private mutating func save(_ line: Range<Int>) throws(RepositoryError) {
    // Throws if the record does not match its checksum. Everything below therefore counts whole lines only.
    let record = try JSONFileParts.record(ofLine: Data(bytes[line]), file: source.path, at: line.lowerBound)
    lineCount += 1
    hash.add(record.checksum)
    salvage.add(record, age: header?.commit ?? 0)
  }

  /// Reads the seal at an offset.
  ///
  /// Returns false if there is something else.
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

  /// Saves the whole records within a damaged part.
  ///
  /// If a line feed was damaged, the part has several.
  private mutating func resynchronise(_ range: Range<Int>, _ number: Int, _ error: RepositoryError) {
    // With a damaged header, the first part is that header, and was reported already.
    let isHeader = number == 1 && header == nil
    var isSaved = false
    var position = range.lowerBound
    var lastEnd: Int?
    while let start = bytes.offset(of: "{\"in\":\"", in: position..<range.upperBound) {
      position = start + 1
      // A value can contain the text of a record, which must not be saved as one.
      guard start == range.lowerBound || isBeginning(start, after: lastEnd),
        let end = JSONExtent.end(of: start, in: bytes, before: range.upperBound)
      else { continue }
      do throws(RepositoryError) {
        try save(start..<end)
        // A saved record is skipped as a whole, so that none is searched for in its value.
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

  /// Returns true if a record may begin at `start`.
  ///
  /// The byte before it must be the place of a line feed after another record, or a byte that cannot precede an object within a JSON value.
  private func isBeginning(_ start: Int, after lastEnd: Int?) -> Bool {
    let before = bytes[start - 1]
    return lastEnd == start - 2
      || !(before == UInt8(ascii: ",") || before == UInt8(ascii: "[") || before == UInt8(ascii: ":") || before == 0x20
        || before == 0x09 || before == 0x0D)
  }

  /// Returns the collection and key of a damaged line, as far as they can be read.
  ///
  /// The damage may be in them.
  private func address(at range: Range<Int>) -> (String?, RecordKey?) {
    let text = String(decoding: bytes[range.prefix(2_048)], as: UTF8.self)
    guard let match = text.prefixMatch(of: /\{"in":"([A-Za-z0-9_.\-]{1,64})","id":"([^"\\]{0,1024})",/) else { return (nil, nil) }
    return (String(match.1), RecordKey(String(match.2)))
  }

  /// Compares the seal with the number and order of the lines that were read.
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
      // Compared only without damage, after which lines are saved out of order and the hash cannot match.
      salvage.add(
        SalvageProblem(source.path, "the lines are whole, but not those that were sealed: some may be older ones"))
    }
    if end < bytes.count {
      salvage.add(
        SalvageProblem(
          source.path, offset: end, "left out \(counted(bytes.count - end, "byte")) behind the end of the store", isLoss: false))
    }
  }

  /// True if records of the main file may be missing.
  var hasLosses: Bool { salvage.problems.contains { $0.file == source.path && $0.isLoss } }
}

/// Hash of a main file's seal: FNV-1a with 64 bits over the checksums of the header and of the lines.
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
