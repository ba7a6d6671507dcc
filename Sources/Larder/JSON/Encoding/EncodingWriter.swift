internal import Foundation

/// The JSON text of one value while the value is being encoded.
///
/// Values nest, so the writer has a stack with one entry (a slot) for each unfinished value. The unfinished values on the stack are written
/// into one text. A type may fill nested containers and the encoders of superclasses in any order. A nested container or superclass encoder
/// may therefore have a writer of its own, whose text is inserted when the enclosing value is finished.
final class EncodingWriter {
  let tally: EncodingTally
  /// Number of arrays and objects that enclose the text of this writer.
  let depth: Int
  /// Coding path of the value whose text this writer holds.
  let path: [any CodingKey]
  /// The part of the writer that changes with every JSON token that is written.
  ///
  /// The state is behind a pointer, because Swift checks each access to a stored property of a class for overlapping accesses. Without the
  /// pointer, those checks took a quarter of the encoding time.
  private let state: UnsafeMutablePointer<State>

  private struct State: ~Copyable {
    var bytes = ByteBuffer(capacity: 512)
    // `scratch` begins without capacity, because most values never use this buffer.
    var scratch = ByteBuffer(capacity: 0)
    var slots: ContiguousArray<Slot> = []
    var members: ContiguousArray<Member> = []
    var children: [EncodingWriter] = []
    var lastSerial = 0
  }

  /// The JSON text written so far.
  var bytes: ByteBuffer {
    @inline(__always) _read { yield state.pointee.bytes }
    @inline(__always) _modify { yield &state.pointee.bytes }
  }
  /// The slots (one for each unfinished value), from the outermost value to the innermost.
  var slots: ContiguousArray<Slot> {
    @inline(__always) _read { yield state.pointee.slots }
    @inline(__always) _modify { yield &state.pointee.slots }
  }
  /// Members of the unfinished objects, and the elements of unfinished arrays that have writers of their own.
  var members: ContiguousArray<Member> {
    @inline(__always) _read { yield state.pointee.members }
    @inline(__always) _modify { yield &state.pointee.members }
  }
  /// Writers of nested containers and superclasses, whose texts are inserted when the enclosing value is finished.
  var children: [EncodingWriter] {
    _read { yield state.pointee.children }
    _modify { yield &state.pointee.children }
  }
  /// Buffer in which the members of an object or the entries of an array are written in sorted order.
  var scratch: ByteBuffer {
    _read { yield state.pointee.scratch }
    _modify { yield &state.pointee.scratch }
  }

  /// One value that is being encoded: its offset in the text and the kind of its content.
  struct Slot {
    enum Content { case nothing, value, object, array }

    /// A serial number that no other slot of the same writer has.
    ///
    /// A coding container stores the serial number of its slot, so that the writer detects a container that is used after its value was
    /// finished.
    let serial: Int
    let step: Step
    /// Offset in the writer's text at which the value begins.
    let start: Int
    let firstMember: Int
    /// Number of arrays and objects that enclose the value.
    let depth: Int
    var content = Content.nothing
    /// Number of elements that were written so far, if the value is an array.
    var count = 0
    /// True if the object's members ascend by name without duplicates, and no member or element has a writer of its own.
    var isInOrder = true
    /// True if a member name has escapes or non-ASCII text, so that the names of the object must be compared as strings.
    var hasOddName = false
  }

  /// A coding-path step from a value to a value inside it: a key or a position in an array.
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

  /// True if any text was written to the writer.
  var hasContent: Bool { bytes.count > 0 }

  // MARK: Slots

  /// Encodes a value at the end of the writer's text.
  ///
  /// - Throws: The error of the value's own `encode(to:)`, or `EncodingError`. If the call throws, the text is the same as before the call.
  func encode<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> Step) throws {
    if try writeLeaf(value, step()) { return }
    try encodeSlot(value, step())
  }

  private func encodeSlot<Value: Encodable>(_ value: Value, _ step: Step) throws {
    // Optionals and raw values nest without a bracket, so the depth limit, which counts arrays and objects, does not stop them.
    // `levelLimit` limits the number of nested values, because deeper recursion could overflow the stack.
    guard slots.count < tally.levelLimit else { throw tooDeep() }
    let isOuter = slots.isEmpty
    let slot = push(step)
    let (memberCount, childCount) = (members.count, children.count)
    do {
      try value.encode(to: SlotEncoder(writer: self, slot: slots.count - 1, serial: slot.serial))
      // As with Foundation, an inner value that encodes nothing becomes an empty object. For an outermost value that encodes nothing,
      // `DirectEncoder` throws.
      if slots[slots.count - 1].content == .nothing, !isOuter { bytes.append("{}") }
      // The test for `UnorderedEncodable` is a dynamic cast, which is slow. The test is skipped for an array of one element, which needs no
      // sorting.
      let isSorted = slots[slots.count - 1].content == .array && slots[slots.count - 1].count > 1
      try finishSlot()
      if isSorted, let type = Value.self as? any UnorderedEncodable.Type {
        sortEntries(from: slot.start, elementsPerEntry: type.elementsPerEntry)
      }
      slots.removeLast()
    } catch {
      // The enclosing type may catch the error and continue, so nothing of the failed value may stay in the text.
      bytes.truncate(to: slot.start)
      members.removeLast(members.count - memberCount)
      children.removeLast(children.count - childCount)
      slots.removeLast()
      throw error
    }
  }

  @discardableResult func push(_ step: Step) -> Slot {
    // A later value gets the same index in `slots`, so a coding container needs the serial number to identify its own value.
    state.pointee.lastSerial += 1
    let depth = slots.last.map { $0.depth + ($0.content == .object || $0.content == .array ? 1 : 0) } ?? depth
    let slot = Slot(serial: state.pointee.lastSerial, step: step, start: bytes.count, firstMember: members.count, depth: depth)
    slots.append(slot)
    return slot
  }

  /// Returns true if an index and a serial number identify the innermost unfinished value, and the encoding has not failed.
  @inline(__always) func isCurrent(_ slot: Int, _ serial: Int) -> Bool {
    slots.count == slot + 1 && slots[slot].serial == serial && !tally.isOver
  }

  /// Throws unless an index and a serial number identify the innermost unfinished value, and the encoding has not failed.
  ///
  /// - Throws: ``JSONTooDeep`` or `EncodingError`.
  @inline(__always) func check(_ slot: Int, _ serial: Int) throws {
    if !isCurrent(slot, serial) { throw notCurrent() }
  }

  @inline(never) private func notCurrent() -> any Error {
    // If the encoding has failed before, the earlier failure is reported, because the misuse of a container may be a consequence of the
    // earlier failure.
    if tally.isTooDeep { return JSONTooDeep(limit: tally.depthLimit) }
    if let misuse = tally.misuse { return misuse }
    return misused("a container was used while a value inside it was encoded, or after its value was finished")
  }

  /// Returns the coding path of the unfinished value at an index of `slots`.
  func path(to slot: Int) -> [any CodingKey] { path + slots.prefix(slot + 1).compactMap(\.step.key) }

  /// Returns the coding path of a member or element of the innermost unfinished value.
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
  /// The encoder of the outermost value, for a writer that was created for one nested container or superclass.
  var outermost: SlotEncoder { SlotEncoder(writer: self, slot: 0, serial: slots[0].serial) }

  /// Returns an encoder whose text is discarded, and makes the whole encoding fail.
  ///
  /// Functions that return a coding container cannot throw. After a failure, these functions return a container of the encoder that
  /// `detached()` returns.
  func detached() -> SlotEncoder {
    noteMisuse("a container was used while a value inside it was encoded, or after its value was finished")
    let writer = EncodingWriter(tally, depth: depth, path: path)
    writer.push(.none)
    return writer.outermost
  }

  /// Begins an object or array as the content of an unfinished value, or continues an object or array that the value already has.
  ///
  /// An object is continued because a superclass and its subclass may encode their members into the same object.
  func open(_ content: Slot.Content, in slot: Int, serial: Int) {
    guard isCurrent(slot, serial) else {
      return noteMisuse("a container was asked for while a value inside it was encoded, or after its value was finished")
    }
    switch slots[slot].content {
    case content: return
    case .nothing:
      // The depth is checked before the next level of nesting begins, because a value that nests without end would otherwise overflow the
      // stack.
      guard slots[slot].depth < tally.depthLimit else { return tally.isTooDeep = true }
      bytes.append(content == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    // A type may encode a single value and then request a container from the same encoder. As with Foundation, a container that is
    // requested after a single value continues that value.
    case .value where bytes.bytes[slots[slot].start] == (content == .object ? UInt8(ascii: "{") : UInt8(ascii: "[")):
      reopen(content, slot)
    default:
      return noteMisuse("a value was encoded as an object, as an array or as a single value, and then as another of these")
    }
    slots[slot].content = content
  }

  /// Reopens an object or array that a type encoded as a single value, so that more members or elements can be written.
  private func reopen(_ content: Slot.Content, _ slot: Int) {
    let end = bytes.count - 1
    // `members` no longer lists the members of a finished value, so the loop finds the members again in the value's text.
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
      position += 1  // over the comma or closing bracket behind the value
    }
    bytes.truncate(to: end)
  }

  /// Returns the offset of the comma or closing bracket behind the value that begins at `start`.
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
    // The first misuse of a container is reported, because later misuses may be consequences of the first.
    if tally.misuse == nil { tally.misuse = misused(what) }
  }
}
