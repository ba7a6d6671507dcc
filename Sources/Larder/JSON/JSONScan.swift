internal import Foundation

/// A single pass over JSON text that checks the grammar and notes the structure for a decoder.
struct JSONScan {
  let bytes: UnsafeRawBufferPointer
  private let depthLimit: Int
  var index = 0
  var hasUnusualNumber = false
  /// Entries of the values and names that were read so far.
  private(set) var entries: ContiguousArray<JSONEntry> = []
  /// Containers around the present position, the outermost first.
  private var open: ContiguousArray<OpenContainer> = []

  private struct OpenContainer {
    /// Position of the container's entry.
    let entry: Int
    var count = 0
    /// Position of the previous name's entry in an object, or 0 before the first.
    var lastName = 0
    var hasOrderedNames = true
  }

  init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    // Records have about one entry for fifteen bytes. The cap keeps a huge text from reserving too much at once.
    entries.reserveCapacity(8 + min(bytes.count / 8, 1 << 20))
  }

  enum Step { case value, end, failed, tooDeep }

  /// Scans the text, and returns whether it is one JSON value within the depth limit.
  mutating func run() -> JSONSyntax.Verdict {
    // Entries hold offsets in 32 bits. A record has at most 1 GiB, so no valid one is refused.
    guard bytes.count < UInt32.max else { return .malformed(offset: Int(clamping: UInt32.max)) }
    // A loop with a stack of its own, because recursion on a hostile text would overflow the thread's.
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

  /// Reads a scalar, an empty container, or the beginning of a container whose first value comes next.
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
      // Behind the outermost value only white space may follow.
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
    // A type that decodes the text recurses with it, so depth is refused before any decoding.
    guard open.count < depthLimit else { return false }
    open.append(OpenContainer(entry: entries.count))
    // The number of values and the end are set when the container is closed.
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

  /// Appends the entry of a value or a name.
  @inline(__always) mutating func note(_ kind: JSONEntry.Kind, isPlain: Bool = true, from start: Int, to end: Int) {
    entries.append(
      JSONEntry(
        kind: kind, isPlain: isPlain, offset: UInt32(truncatingIfNeeded: start), length: UInt32(truncatingIfNeeded: end - start),
        next: UInt32(truncatingIfNeeded: entries.count + 1)))
  }

  /// Notes whether the name that was read sorts behind the one before it.
  @inline(__always) mutating func noteOrder() {
    let name = entries.count - 1
    let container = open.count - 1
    let last = open[container].lastName
    open[container].lastName = name
    // Ascending plain names are unique, and a decoder can compare them as bytes.
    if !entries[name].isPlain || (last > 0 && !isBefore(entries[last], entries[name])) { open[container].hasOrderedNames = false }
  }

  private func isBefore(_ left: JSONEntry, _ right: JSONEntry) -> Bool {
    // Both names were read from the bytes, so these have an address.
    let difference = memcmp(
      bytes.baseAddress.unsafelyUnwrapped + Int(left.offset), bytes.baseAddress.unsafelyUnwrapped + Int(right.offset),
      Int(min(left.length, right.length)))
    return difference == 0 ? left.length < right.length : difference < 0
  }
}

/// One value of a JSON text, or the name of a member.
///
/// A name comes before its value, and the contents of a container behind the container.
struct JSONEntry {
  enum Kind: UInt8 { case null, `true`, `false`, number, string, array, object }

  let kind: Kind
  /// Whether the value has the simplest form of its kind.
  ///
  /// A plain string is ASCII without escapes, and a plain number is written as an integer. The names of a plain object are plain strings in
  /// ascending order, so that no two are equal.
  var isPlain: Bool
  /// Offset of the text, which for a string is behind the quotation mark.
  let offset: UInt32
  /// Length of the text in bytes or, for a container, the number of its values.
  var length: UInt32
  /// Position of the entry behind this value and its contents.
  var next: UInt32

  var range: Range<Int> { Int(offset)..<Int(offset) + Int(length) }

  /// Name of the kind, for errors.
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
