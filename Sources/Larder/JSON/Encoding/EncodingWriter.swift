internal import Foundation

/// The JSON text of one value while that is being encoded.
///
/// Values nest, so the text is written from front to back and the slots of unfinished values form a stack. Nested containers and the
/// encoders of superclasses may be filled in any order. Each has a writer of its own, whose text is inserted when the value around it is
/// finished.
final class EncodingWriter {
  let tally: EncodingTally
  /// Number of containers around the text.
  let depth: Int
  /// Coding path of the text.
  let path: [any CodingKey]
  /// The state that changes with every token.
  ///
  /// It lies behind a pointer, because each access to a property of a class is checked for overlaps, which took a quarter of the time.
  private let state: UnsafeMutablePointer<State>

  private struct State: ~Copyable {
    var bytes = ByteBuffer(capacity: 512)
    // Only objects that come out of order need it, so it begins without memory.
    var scratch = ByteBuffer(capacity: 0)
    var slots: ContiguousArray<Slot> = []
    var members: ContiguousArray<Member> = []
    var children: [EncodingWriter] = []
    var lastSerial = 0
  }

  /// The text written so far.
  var bytes: ByteBuffer {
    @inline(__always) _read { yield state.pointee.bytes }
    @inline(__always) _modify { yield &state.pointee.bytes }
  }
  /// Slots of the values that are being encoded, each inside the one before.
  var slots: ContiguousArray<Slot> {
    @inline(__always) _read { yield state.pointee.slots }
    @inline(__always) _modify { yield &state.pointee.slots }
  }
  /// Members of the unfinished objects, and the elements of arrays that have writers of their own.
  var members: ContiguousArray<Member> {
    @inline(__always) _read { yield state.pointee.members }
    @inline(__always) _modify { yield &state.pointee.members }
  }
  /// Writers of nested containers and superclasses, whose texts are inserted later.
  var children: [EncodingWriter] {
    _read { yield state.pointee.children }
    _modify { yield &state.pointee.children }
  }
  /// Buffer in which the members of an object are put in order.
  var scratch: ByteBuffer {
    _read { yield state.pointee.scratch }
    _modify { yield &state.pointee.scratch }
  }

  /// A value that is being encoded.
  struct Slot {
    enum Content { case nothing, value, object, array }

    /// A number that no other slot of the writer has.
    ///
    /// It distinguishes a container that outlives its value from the one in use.
    let serial: Int
    let step: Step
    /// Offset of the value's text.
    let start: Int
    let firstMember: Int
    /// Number of containers around the value.
    let depth: Int
    var content = Content.nothing
    /// Number of elements, for an array.
    var count = 0
    /// Whether the members ascend by name without duplicates, and none has a writer of its own.
    var isInOrder = true
    /// Whether a name has escapes or non-ASCII text, so that names must be compared as strings.
    var hasOddName = false
  }

  /// A coding-path step from a value to one inside it.
  enum Step {
    case none
    case position(Int)
    case key(any CodingKey)

    var key: (any CodingKey)? {
      switch self {
      case .none: nil
      case .position(let position): PlainCodingKey(position: position)
      case .key(let key): key
      }
    }
  }

  init(_ tally: EncodingTally, depth: Int, path: [any CodingKey]) {
    self.tally = tally
    self.depth = depth
    self.path = path
    state = .allocate(capacity: 1)
    state.initialize(to: State())
    slots.reserveCapacity(4)
    members.reserveCapacity(16)
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Whether any text was written.
  var hasContent: Bool { bytes.count > 0 }

  // MARK: Slots

  /// Encodes a value at the end of the text.
  ///
  /// - Throws: The value's own error. The text is then as it was before.
  func encode<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> Step) throws {
    if try writeLeaf(value, step()) { return }
    try encodeSlot(value, step())
  }

  private func encodeSlot<Value: Encodable>(_ value: Value, _ step: Step) throws {
    // Optionals and raw values recurse without a bracket, so levels are limited beside depth: the stack must not overflow.
    guard slots.count < tally.levelLimit else { throw tooDeep() }
    let isOuter = slots.isEmpty
    let slot = push(step)
    let (memberCount, childCount) = (members.count, children.count)
    do {
      try value.encode(to: SlotEncoder(writer: self, slot: slots.count - 1, serial: slot.serial))
      // As with Foundation, an inner value that encodes nothing is an empty object, and an outermost one is an error.
      if slots[slots.count - 1].content == .nothing, !isOuter { bytes.append("{}") }
      // Looking up a conformance costs a dynamic cast, so only arrays of several elements are tested for it.
      let isSorted = slots[slots.count - 1].content == .array && slots[slots.count - 1].count > 1
      try finishSlot()
      if isSorted, let type = Value.self as? any UnorderedEncodable.Type {
        sortEntries(from: slot.start, elementsPerEntry: type.elementsPerEntry)
      }
      slots.removeLast()
    } catch {
      // The type around may catch the error and go on, so nothing of the failed value may stay.
      bytes.truncate(to: slot.start)
      members.removeLast(members.count - memberCount)
      children.removeLast(children.count - childCount)
      slots.removeLast()
      throw error
    }
  }

  @discardableResult func push(_ step: Step) -> Slot {
    // Positions of slots are used again, so a position alone does not identify a value.
    state.pointee.lastSerial += 1
    let depth = slots.last.map { $0.depth + ($0.content == .object || $0.content == .array ? 1 : 0) } ?? depth
    let slot = Slot(serial: state.pointee.lastSerial, step: step, start: bytes.count, firstMember: members.count, depth: depth)
    slots.append(slot)
    return slot
  }

  /// Whether a slot is the innermost one that is being encoded, and the encoding has not failed.
  @inline(__always) func isCurrent(_ slot: Int, _ serial: Int) -> Bool {
    slots.count == slot + 1 && slots[slot].serial == serial && !tally.isOver
  }

  /// Checks that a slot can be written now.
  /// - Throws: ``JSONTooDeep`` or `EncodingError` if it cannot.
  @inline(__always) func check(_ slot: Int, _ serial: Int) throws {
    if !isCurrent(slot, serial) { throw notCurrent() }
  }

  @inline(never) private func notCurrent() -> any Error {
    // The first failure is the cause, and a misuse after it only a consequence.
    if tally.isTooDeep { return JSONTooDeep(limit: tally.depthLimit) }
    if let misuse = tally.misuse { return misuse }
    return misused("a container was used while a value inside it was encoded, or after its value was finished")
  }

  /// Returns the coding path of a slot.
  func path(to slot: Int) -> [any CodingKey] { path + slots.prefix(slot + 1).compactMap(\.step.key) }

  /// Returns the coding path of a value inside the current slot.
  func path(_ step: Step) -> [any CodingKey] { path(to: slots.count - 1) + (step.key.map { [$0] } ?? []) }

  // MARK: Failures

  func tooDeep() -> any Error {
    tally.isTooDeep = true
    return JSONTooDeep(limit: tally.depthLimit)
  }

  func misused(_ what: String) -> EncodingError {
    .invalidValue(what, .init(codingPath: path(to: slots.count - 1), debugDescription: what))
  }

  func nothingEncoded(_ value: some Encodable) -> EncodingError {
    .invalidValue(value, .init(codingPath: path, debugDescription: "expected a value that encodes something, found \(type(of: value))"))
  }
}

extension EncodingWriter {
  /// The encoder of the whole text, for a writer that was made for one value.
  var outermost: SlotEncoder { SlotEncoder(writer: self, slot: 0, serial: slots[0].serial) }

  /// Returns an encoder whose text is thrown away, and makes the encoding fail.
  ///
  /// Functions that return a container cannot throw the error themselves.
  func detached() -> SlotEncoder {
    noteMisuse("a container was used while a value inside it was encoded, or after its value was finished")
    let writer = EncodingWriter(tally, depth: depth, path: path)
    writer.push(.none)
    return writer.outermost
  }

  /// Begins an object or array in a slot, or continues the one that is there.
  ///
  /// A superclass and its subclass may share one.
  func open(_ content: Slot.Content, _ slot: Int, _ serial: Int) {
    guard isCurrent(slot, serial) else {
      return noteMisuse("a container was asked for while a value inside it was encoded, or after its value was finished")
    }
    switch slots[slot].content {
    case content: return
    case .nothing:
      // Checked before the next level is entered, since a value without end would overflow the stack first.
      guard slots[slot].depth < tally.depthLimit else { return tally.isTooDeep = true }
      bytes.append(content == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    // A single value that was itself encoded as a container may be continued, as with Foundation.
    case .value where bytes.bytes[slots[slot].start] == (content == .object ? UInt8(ascii: "{") : UInt8(ascii: "[")):
      reopen(content, slot)
    default:
      return noteMisuse("a value was encoded as an object, as an array or as a single value, and then as another of these")
    }
    slots[slot].content = content
  }

  /// Reopens an object or array that was encoded as the single value of a slot.
  private func reopen(_ content: Slot.Content, _ slot: Int) {
    let end = bytes.count - 1
    // The members were forgotten when the value was finished, so they are found again in its text.
    var position = slots[slot].start + 1
    while position < end {
      let start = position
      if content == .object {
        position = JSONString.end(in: bytes.bytes, from: position)
        let length = position - start - 2
        let name = UnsafeRawBufferPointer(rebasing: bytes.bytes[(start + 1)..<(position - 1)])
        if name.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "\\") }) { slots[slot].hasOddName = true }
        members.append(Member(prefix: bytes.prefix(at: start + 1, length: length), start: start, nameLength: length))
      } else {
        slots[slot].count += 1
      }
      position = endOfValue(from: position)
      if content == .object { members[members.count - 1].end = position }
      position += 1  // the comma, or the closing bracket
    }
    bytes.truncate(to: end)
  }

  /// Returns the offset of the comma or the closing bracket behind a value.
  func endOfValue(from start: Int) -> Int {
    let text = bytes.bytes
    var (position, depth) = (start, 0)
    while true {
      switch text[position] {
      case UInt8(ascii: "\""):
        position = JSONString.end(in: text, from: position)
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return position }
        depth -= 1
      case UInt8(ascii: ",") where depth == 0: return position
      default: break
      }
      position += 1
    }
  }

  private func noteMisuse(_ what: String) {
    // The first misuse is reported, because later ones may follow from it.
    if tally.misuse == nil { tally.misuse = misused(what) }
  }
}
