internal import Foundation

/// One pass over a JSON text, which checks it, and notes its structure for a decoder.
struct JSONScan {
  let bytes: UnsafeRawBufferPointer
  private let depthLimit: Int
  var index = 0
  var hasUnusualNumber = false
  /// The values and names so far.
  private(set) var entries: ContiguousArray<JSONEntry> = []
  /// The containers around, from the outermost.
  private var open: ContiguousArray<OpenContainer> = []

  private struct OpenContainer {
    /// The position of its entry.
    let entry: Int
    var count = 0
    /// The position of the entry of the name before, in an object; 0 before the first.
    var lastName = 0
    var hasOrderedNames = true
  }

  init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    // A record has an entry for each fifteen bytes, more or less.
    entries.reserveCapacity(8 + min(bytes.count / 8, 1 << 20))
  }

  enum Step { case value, end, failed, tooDeep }

  mutating func run() -> JSONSyntax.Verdict {
    // Entries count in 32 bits; no record may be so long.
    guard bytes.count < UInt32.max else { return .malformed(offset: Int(clamping: UInt32.max)) }
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

  /// Reads a value, or the beginning of a container whose first value comes next.
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

  /// Reads what comes behind a value, up to the next value or the end of the text.
  private mutating func follow() -> Step {
    while true {
      skipSpace()
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
    guard open.count < depthLimit else { return false }
    open.append(OpenContainer(entry: entries.count))
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

  /// Notes a value or a name.
  @inline(__always) mutating func note(_ kind: JSONEntry.Kind, isPlain: Bool = true, from start: Int, to end: Int) {
    entries.append(
      JSONEntry(
        kind: kind, isPlain: isPlain, offset: UInt32(truncatingIfNeeded: start), length: UInt32(truncatingIfNeeded: end - start),
        next: UInt32(truncatingIfNeeded: entries.count + 1)))
  }

  /// Notes whether the name that was read comes behind the one before it.
  @inline(__always) mutating func noteOrder() {
    let name = entries.count - 1
    let container = open.count - 1
    let last = open[container].lastName
    open[container].lastName = name
    if !entries[name].isPlain || (last > 0 && !isBefore(entries[last], entries[name])) { open[container].hasOrderedNames = false }
  }

  private func isBefore(_ left: JSONEntry, _ right: JSONEntry) -> Bool {
    let difference = memcmp(
      bytes.baseAddress.unsafelyUnwrapped + Int(left.offset), bytes.baseAddress.unsafelyUnwrapped + Int(right.offset),
      Int(min(left.length, right.length)))
    return difference == 0 ? left.length < right.length : difference < 0
  }
}

/// A value of a JSON text, or the name of a member: the name comes before its value, and what is in a container behind the container.
struct JSONEntry {
  enum Kind: UInt8 { case null, `true`, `false`, number, string, array, object }

  let kind: Kind
  /// Of a string, whether it is ASCII without escapes; of a number, whether it is an integer; of an object, whether its names are plain
  /// strings in ascending order, so that no two are alike.
  var isPlain: Bool
  /// The offset of the text: of a string, behind its quotation mark.
  let offset: UInt32
  /// The length of the text in bytes; of a container, the number of its values.
  var length: UInt32
  /// The position of the entry behind this value and all that is in it.
  var next: UInt32

  var range: Range<Int> { Int(offset)..<Int(offset) + Int(length) }

  /// The kind in words, for errors.
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
