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
