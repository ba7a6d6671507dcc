internal import Foundation

/// A single pass over a JSON text that checks the grammar and lists the text's values and names for a decoder.
struct JSONScan {
  let bytes: UnsafeRawBufferPointer
  private let depthLimit: Int
  var index = 0
  var hasUnusualNumber = false
  /// Entries of the values and member names that were read so far, in the order of the text.
  private(set) var entries: ContiguousArray<JSONEntry> = []
  /// Arrays and objects around the current position, from the outermost to the innermost.
  private var open: ContiguousArray<OpenContainer> = []

  private struct OpenContainer {
    /// Position of the container's entry in ``JSONScan/entries``.
    let entry: Int
    var count = 0
    /// Position of the entry of the object's previous name, or 0 before the first name.
    var lastName = 0
    var hasOrderedNames = true
  }

  init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    // One entry for eight bytes is more than most records need: they have about one value or name for each fifteen bytes. The cap keeps a
    // huge text from reserving too much memory at once.
    entries.reserveCapacity(8 + min(bytes.count / 8, 1 << 20))
  }

  enum Step { case value, end, failed, tooDeep }

  /// Scans the text, and returns `.valid` if it is one JSON value within the depth limit.
  mutating func run() -> JSONSyntax.Verdict {
    // Entries store offsets in 32 bits. A record has at most 1 GiB, so this check refuses no valid record.
    guard bytes.count < UInt32.max else { return .malformed(offset: Int(clamping: UInt32.max)) }
    // The scan is a loop with its own stack of containers, because recursion on a hostile text would overflow the stack of the thread.
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

  /// Reads a scalar, an empty container, or the beginning of a container up to its first value.
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

  /// Reads the commas and closing brackets behind a value, up to the next value or the end of the text.
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
    // A type that decodes the text recurses once for each level, so a text that is too deep is refused before any decoding.
    guard open.count < depthLimit else { return false }
    open.append(OpenContainer(entry: entries.count))
    // Length 0 here is a placeholder: `pop()` sets the number of values and the next entry when the container is closed.
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

  /// Appends the entry of a value or a member name.
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
    // If an object's names are plain and in ascending order, they are unique, and a decoder can compare them as bytes.
    if !entries[name].isPlain || (last > 0 && !isBefore(entries[last], entries[name])) { open[container].hasOrderedNames = false }
  }

  private func isBefore(_ left: JSONEntry, _ right: JSONEntry) -> Bool {
    // Both names were read from `bytes`, so `bytes` is not empty and has an address.
    let difference = memcmp(
      bytes.baseAddress.unsafelyUnwrapped + Int(left.offset), bytes.baseAddress.unsafelyUnwrapped + Int(right.offset),
      Int(min(left.length, right.length)))
    return difference == 0 ? left.length < right.length : difference < 0
  }
}

/// One entry of the scan: a value of a JSON text, or the name of a member.
///
/// The entry of a name comes directly before the entry of its value. The entries of a container's contents come directly after the
/// container's entry.
struct JSONEntry {
  enum Kind: UInt8 { case null, `true`, `false`, number, string, array, object }

  let kind: Kind
  /// True if the value has the simplest form of its kind, which a decoder can read in fewer steps.
  ///
  /// A plain string is ASCII without escapes. A plain number is written as an integer. The names of a plain object are plain strings in
  /// ascending order, so that no two are equal.
  var isPlain: Bool
  /// Offset of the value's text, which for a string begins behind its quotation mark.
  let offset: UInt32
  /// Length of the value's text in bytes or, for an array or object, the number of its values.
  var length: UInt32
  /// Position of the entry that follows this value and all its contents.
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
