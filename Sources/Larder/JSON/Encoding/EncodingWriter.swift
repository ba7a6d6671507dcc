internal import Foundation

/// The text of one value while it is encoded.
///
/// Values are encoded inside each other, so the text is written from front to back, and the slots of the values that are not finished are a
/// stack. What does not go in this order (a nested container, the place of a superclass) has a writer of its own, whose text is put in when
/// the value around it is finished.
final class EncodingWriter {
  let tally: EncodingTally
  /// The number of brackets around the text.
  let depth: Int
  /// The path to the text.
  let path: [any CodingKey]
  /// The state that changes with every token.
  ///
  /// Behind a pointer: each access to a property of a class is checked for overlaps, which took a quarter of the time.
  private let state: UnsafeMutablePointer<State>

  private struct State: ~Copyable {
    var bytes = ByteBuffer(capacity: 512)
    var scratch = ByteBuffer(capacity: 0)
    var slots: ContiguousArray<Slot> = []
    var members: ContiguousArray<Member> = []
    var children: [EncodingWriter] = []
    var lastSerial = 0
  }

  /// The text so far.
  var bytes: ByteBuffer {
    @inline(__always) _read { yield state.pointee.bytes }
    @inline(__always) _modify { yield &state.pointee.bytes }
  }
  /// The values that are being encoded, each inside the one before.
  var slots: ContiguousArray<Slot> {
    @inline(__always) _read { yield state.pointee.slots }
    @inline(__always) _modify { yield &state.pointee.slots }
  }
  /// The members of the objects that are being encoded, and what in arrays is written elsewhere.
  var members: ContiguousArray<Member> {
    @inline(__always) _read { yield state.pointee.members }
    @inline(__always) _modify { yield &state.pointee.members }
  }
  /// The writers of what is written elsewhere.
  var children: [EncodingWriter] {
    _read { yield state.pointee.children }
    _modify { yield &state.pointee.children }
  }
  /// The text of an object while its members are put in order.
  var scratch: ByteBuffer {
    _read { yield state.pointee.scratch }
    _modify { yield &state.pointee.scratch }
  }

  /// A value that is being encoded.
  struct Slot {
    enum Content { case nothing, value, object, array }

    /// A number that no other slot of the writer has, so that a container which outlives its value is known.
    let serial: Int
    let step: Step
    /// The offset of the text.
    let start: Int
    let firstMember: Int
    /// The number of brackets around the value's own.
    let depth: Int
    var content = Content.nothing
    /// The number of elements of an array.
    var count = 0
    /// Whether the members are written in the order of their names, no two alike, and none elsewhere.
    var isInOrder = true
    /// Whether a name has escapes, or more than ASCII.
    var hasOddName = false
  }

  /// The step from a value to one inside it.
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

  /// Whether there is any text.
  var hasContent: Bool { bytes.count > 0 }

  // MARK: Slots

  /// Encodes a value where the text ends.
  ///
  /// - Throws: what the value throws; then the text is as it was.
  func encode<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> Step) throws {
    if try writeLeaf(value, step()) { return }
    try encodeSlot(value, step())
  }

  private func encodeSlot<Value: Encodable>(_ value: Value, _ step: Step) throws {
    guard slots.count < tally.levelLimit else { throw tooDeep() }
    let isOuter = slots.isEmpty
    let slot = push(step)
    let (memberCount, childCount) = (members.count, children.count)
    do {
      try value.encode(to: SlotEncoder(writer: self, slot: slots.count - 1, serial: slot.serial))
      if slots[slots.count - 1].content == .nothing, !isOuter { bytes.append("{}") }
      // Only of an array, so that no other value is asked for its type.
      let isSorted = slots[slots.count - 1].content == .array && slots[slots.count - 1].count > 1
      try finishSlot()
      if isSorted, let type = Value.self as? any UnorderedEncodable.Type {
        sortEntries(from: slot.start, elementsPerEntry: type.elementsPerEntry)
      }
      slots.removeLast()
    } catch {
      bytes.truncate(to: slot.start)
      members.removeLast(members.count - memberCount)
      children.removeLast(children.count - childCount)
      slots.removeLast()
      throw error
    }
  }

  @discardableResult func push(_ step: Step) -> Slot {
    state.pointee.lastSerial += 1
    let depth = slots.last.map { $0.depth + ($0.content == .object || $0.content == .array ? 1 : 0) } ?? depth
    let slot = Slot(serial: state.pointee.lastSerial, step: step, start: bytes.count, firstMember: members.count, depth: depth)
    slots.append(slot)
    return slot
  }

  /// Whether a slot is the one that is being encoded.
  @inline(__always) func isCurrent(_ slot: Int, _ serial: Int) -> Bool {
    slots.count == slot + 1 && slots[slot].serial == serial && !tally.isOver
  }

  /// - Throws: The error for a slot that cannot be written, or not now.
  @inline(__always) func check(_ slot: Int, _ serial: Int) throws {
    if !isCurrent(slot, serial) { throw notCurrent() }
  }

  @inline(never) private func notCurrent() -> any Error {
    if tally.isTooDeep { return JSONTooDeep(limit: tally.depthLimit) }
    if let misuse = tally.misuse { return misuse }
    return misused("a container was used while a value inside it was encoded, or after its value was finished")
  }

  /// Returns a slot's path.
  func path(to slot: Int) -> [any CodingKey] { path + slots.prefix(slot + 1).compactMap(\.step.key) }

  /// Returns the path of a value in the slot that is being encoded.
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
  /// The encoder of the whole text of a writer that was made for one value.
  var outermost: SlotEncoder { SlotEncoder(writer: self, slot: 0, serial: slots[0].serial) }

  /// Makes the encoder of a place that cannot be written, and has the encoding fail: its callers cannot.
  func detached() -> SlotEncoder {
    noteMisuse("a container was used while a value inside it was encoded, or after its value was finished")
    let writer = EncodingWriter(tally, depth: depth, path: path)
    writer.push(.none)
    return writer.outermost
  }

  /// Begins an object or an array in a slot, or goes on with the one that is there: a superclass and its subclass share theirs.
  func open(_ content: Slot.Content, _ slot: Int, _ serial: Int) {
    guard isCurrent(slot, serial) else {
      return noteMisuse("a container was asked for while a value inside it was encoded, or after its value was finished")
    }
    switch slots[slot].content {
    case content: return
    case .nothing:
      guard slots[slot].depth < tally.depthLimit else { return tally.isTooDeep = true }
      bytes.append(content == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    case .value where bytes.bytes[slots[slot].start] == (content == .object ? UInt8(ascii: "{") : UInt8(ascii: "[")):
      reopen(content, slot)
    default:
      return noteMisuse("a value was encoded as an object, as an array or as a single value, and then as another of these")
    }
    slots[slot].content = content
  }

  /// Opens the object or array again that was encoded as the single value of a slot.
  private func reopen(_ content: Slot.Content, _ slot: Int) {
    let end = bytes.count - 1
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

  /// Returns the offset of the comma or the bracket behind a value.
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
    if tally.misuse == nil { tally.misuse = misused(what) }
  }
}
