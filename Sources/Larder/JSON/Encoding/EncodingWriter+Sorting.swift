internal import Foundation

/// A collection that encodes itself as an array in an order of its own, another one at each launch of a program.
///
/// The encoder sorts such arrays. Equal values then have equal bytes, which merges, comparisons and backends rely on.
protocol UnorderedEncodable {
  /// The number of elements of the array that stay together.
  static var elementsPerEntry: Int { get }
}

extension Set: UnorderedEncodable {
  static var elementsPerEntry: Int { 1 }
}

/// A dictionary whose keys are no names of JSON is encoded as keys and values in turn.
extension Dictionary: UnorderedEncodable {
  static var elementsPerEntry: Int { 2 }
}

extension EncodingWriter {
  /// Sorts the entries of the array that is the end of the text, by their bytes.
  ///
  /// Cost: a scan of the array, and a sort of its entries.
  func sortEntries(from start: Int, elementsPerEntry: Int) {
    var entries: [Range<Int>] = []
    var position = start + 1
    while position < bytes.count - 1 {
      let first = position
      for element in 1...elementsPerEntry {
        position = endOfValue(from: position)
        // The comma within the entry.
        if element < elementsPerEntry { position += 1 }
      }
      entries.append(first..<position)
      position += 1
    }
    let text = bytes.bytes
    let part = { (entry: Range<Int>) in UnsafeRawBufferPointer(rebasing: text[entry]) }
    let sorted = entries.sorted { part($0).precedesInBytes(part($1)) }
    guard sorted != entries else { return }
    scratch.truncate(to: 0)
    for entry in sorted {
      scratch.append(scratch.count == 0 ? UInt8(ascii: "[") : UInt8(ascii: ","))
      scratch.append(part(entry))
    }
    scratch.append(UInt8(ascii: "]"))
    bytes.truncate(to: start)
    bytes.append(scratch.bytes)
  }
}
