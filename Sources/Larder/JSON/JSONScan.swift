internal import Foundation

/// A scan that checks the grammar of a JSON text in one pass, and lists the text's values and names for a decoder.
struct JSONScan {
  let bytes: UnsafeRawBufferPointer
  private let depthLimit: Int
  var index = 0
  var hasUnusualNumber = false
  /// One entry for each value and member name that was read so far, in the order of the text.
  private(set) var entries: ContiguousArray<JSONEntry> = []
  /// Arrays and objects whose closing bracket was not read yet, from the outermost to the innermost.
  private var open: ContiguousArray<OpenContainer> = []

  private struct OpenContainer {
    /// Index in ``JSONScan/entries`` of the entry of the array or object.
    let entry: Int
    var count = 0
    /// Index in ``JSONScan/entries`` of the object's last name that was read, or 0 before the first name.
    var lastName = 0
    var hasOrderedNames = true
  }

  init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    // Most records have about one value or name for each fifteen bytes, so one entry for each eight bytes is enough. The maximum of 2^20
    // entries keeps a huge text from reserving too much memory at once.
    entries.reserveCapacity(8 + min(bytes.count / 8, 1 << 20))
  }

  enum Step { case value, end, failed, tooDeep }

  /// Scans the text, and returns `.valid` if it is one JSON value within the depth limit.
  mutating func run() -> JSONSyntax.Verdict {
    // Entries store offsets in 32 bits, so a text of 4 GiB or more is refused. A record has at most 1 GiB, so no valid record is refused.
    guard bytes.count < UInt32.max else { return .malformed(offset: Int(clamping: UInt32.max)) }
    // The scan is a loop with its own stack of open arrays and objects, because recursion on a hostile text could overflow the thread's
    // stack.
    while true {
      switch value() {
      case .value: continue
      case .tooDeep: return .tooDeep
      case .failed: return .malformed(offset: index)
      case .end: break
      }
      switch follow() {
      case .value: continue
      case .end: return .valid(hasUnusualNumber: hasUnusualNumber)
      case .failed, .tooDeep: return .malformed(offset: index)
      }
    }
  }

  /// Reads a scalar, an empty array or object, or the beginning of an array or object up to its first value.
  private mutating func value() -> Step {
    skipSpace()
    guard let byte = current else { return .failed }
    if !open.isEmpty { open[open.count - 1].count += 1 }
    switch byte {
    case UInt8(ascii: "\""):
      return string() ? .end : .failed
    case UInt8(ascii: "{"):
      guard push(isObject: true) else { return .tooDeep }
      skipSpace()
      if take(UInt8(ascii: "}")) { return pop() }
      return name() ? .value : .failed
    case UInt8(ascii: "["):
      guard push(isObject: false) else { return .tooDeep }
      skipSpace()
      return take(UInt8(ascii: "]")) ? pop() : .value
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return number() ? .end : .failed
    case UInt8(ascii: "t"): return literal("true", .true)
    case UInt8(ascii: "f"): return literal("false", .false)
    case UInt8(ascii: "n"): return literal("null", .null)
    default: return .failed
    }
  }

  /// Reads the comma or closing brackets that follow a value, up to the next value or the end of the text.
  private mutating func follow() -> Step {
    while true {
      skipSpace()
      // After the outermost value, a JSON text may contain only white space, so any other byte is an error.
      guard let container = open.last else { return index == bytes.count ? .end : .failed }
      guard let byte = current else { return .failed }
      let isObject = entries[container.entry].kind == .object
      switch byte {
      case UInt8(ascii: ","):
        index += 1
        guard isObject else { return .value }
        skipSpace()
        return name() ? .value : .failed
      case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject:
        index += 1
        _ = pop()
      default:
        return .failed
      }
    }
  }

  private mutating func push(isObject: Bool) -> Bool {
    // Decoding recurses once for each level of nesting, so the scan refuses a text that nests too deep before any of it is decoded.
    guard open.count < depthLimit else { return false }
    open.append(OpenContainer(entry: entries.count))
    // The entry's length 0 is a placeholder: `pop()` sets the number of values and the next entry at the closing bracket.
    note(isObject ? .object : .array, from: index, to: index)
    index += 1
    return true
  }

  private mutating func pop() -> Step {
    let closed = open.removeLast()
    entries[closed.entry].length = UInt32(truncatingIfNeeded: closed.count)
    entries[closed.entry].next = UInt32(truncatingIfNeeded: entries.count)
    entries[closed.entry].isPlain = closed.hasOrderedNames
    return .end
  }

  /// Appends an entry for a value or a member name.
  @inline(__always) mutating func note(_ kind: JSONEntry.Kind, isPlain: Bool = true, from start: Int, to end: Int) {
    entries.append(
      JSONEntry(
        kind: kind, isPlain: isPlain, offset: UInt32(truncatingIfNeeded: start), length: UInt32(truncatingIfNeeded: end - start),
        next: UInt32(truncatingIfNeeded: entries.count + 1)))
  }

  /// Records whether the name that was read last sorts behind the previous name of the same object.
  @inline(__always) mutating func noteOrder() {
    let name = entries.count - 1
    let container = open.count - 1
    let last = open[container].lastName
    open[container].lastName = name
    // Names that are plain (ASCII without escapes) and in ascending order are unique, and a decoder can compare them as bytes.
    if !entries[name].isPlain || (last > 0 && !isBefore(entries[last], entries[name])) { open[container].hasOrderedNames = false }
  }

  private func isBefore(_ left: JSONEntry, _ right: JSONEntry) -> Bool {
    // The two compared names were read from `bytes`, so `bytes` is not empty and has a base address.
    let difference = memcmp(
      bytes.baseAddress.unsafelyUnwrapped + Int(left.offset), bytes.baseAddress.unsafelyUnwrapped + Int(right.offset),
      Int(min(left.length, right.length)))
    return difference == 0 ? left.length < right.length : difference < 0
  }
}

/// A value of a JSON text, or the name of a member, as `JSONScan` lists it.
///
/// The entry of a name comes directly before the entry of its value. The entries of the contents of an array or object come directly after
/// the entry of the array or object.
struct JSONEntry {
  enum Kind: UInt8 { case null, `true`, `false`, number, string, array, object }

  let kind: Kind
  /// True if the value has the simplest form of its kind, which a decoder can read in fewer steps.
  ///
  /// A plain string is ASCII without escapes. A plain number is written as an integer. The names of a plain object are plain strings in
  /// ascending order, so that no two names are equal.
  var isPlain: Bool
  /// Offset of the first byte of the value's text, or, for a string, of the first byte behind its opening quotation mark.
  let offset: UInt32
  /// Length of the value's text in bytes, or, for an array or object, the number of values that it holds.
  var length: UInt32
  /// Index of the first entry behind the value and all its contents.
  var next: UInt32

  var range: Range<Int> { Int(offset)..<Int(offset) + Int(length) }

  /// Name of the value's kind, for error messages.
  var name: String {
    switch kind {
    case .null: "null"
    case .true, .false: "a truth value"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
