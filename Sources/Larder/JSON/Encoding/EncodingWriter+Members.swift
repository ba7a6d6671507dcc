internal import Foundation

extension EncodingWriter {
  /// A member of an unfinished object, or an array element that has a writer of its own.
  struct Member {
    /// First eight bytes of the name, most significant first, which tell most names apart.
    let prefix: UInt64
    private let offset: UInt32
    private let length: Int32
    private var endOffset: UInt32 = 0
    private var childPosition: Int32 = -1

    init(prefix: UInt64, start: Int, nameLength: Int, child: Int = -1) {
      self.prefix = prefix
      // `finishSlot()` refuses texts of 4 GiB and more, so nothing that is cut off here gets into a file.
      offset = UInt32(truncatingIfNeeded: start)
      length = Int32(truncatingIfNeeded: nameLength)
      childPosition = Int32(truncatingIfNeeded: child)
    }

    /// Offset of the name's opening quotation mark or, in an array, of the element.
    var start: Int { Int(offset) }
    /// Length of the name as written, without quotation marks, or -1 in an array.
    var nameLength: Int { Int(length) }
    /// Offset of the value's end, set when the next member begins or the object ends.
    var end: Int {
      get { Int(endOffset) }
      set { endOffset = UInt32(truncatingIfNeeded: newValue) }
    }
    /// Position of the value's writer in ``EncodingWriter/children``, or -1 for a value in this text.
    var child: Int {
      get { Int(childPosition) }
      set { childPosition = Int32(truncatingIfNeeded: newValue) }
    }
    var nameRange: Range<Int> { start + 1..<start + 1 + nameLength }
    /// Offset of the value, behind the quoted name and the colon.
    var valueStart: Int { start + nameLength + 3 }
  }

  /// Begins a member of the current object, whose value is written next.
  @inline(__always) func beginMember(_ name: String) {
    let slot = slots.count - 1
    let isFirst = members.count == slots[slot].firstMember
    if !isFirst {
      members[members.count - 1].end = bytes.count
      bytes.append(UInt8(ascii: ","))
    }
    let start = bytes.count
    let isPlain = bytes.append(quoting: name)
    let length = bytes.count - start - 2
    bytes.append(UInt8(ascii: ":"))
    let member = Member(prefix: bytes.prefix(at: start + 1, length: length), start: start, nameLength: length)
    // An escaped name sorts elsewhere than the characters that it stands for.
    if !isPlain { slots[slot].hasOddName = true }
    // An object whose members come in order is finished by its bracket alone.
    if !isFirst, let last = members.last, !isBefore(last, member) { slots[slot].isInOrder = false }
    members.append(member)
  }

  /// Removes the last member, whose value could not be encoded.
  func removeMember() {
    let member = members.removeLast()
    let isFirst = members.count == slots[slots.count - 1].firstMember
    bytes.truncate(to: isFirst ? member.start : member.start - 1)
  }

  /// Begins an element of the current array, whose value is written next.
  @inline(__always) func beginElement() {
    let slot = slots.count - 1
    if slots[slot].count > 0 { bytes.append(UInt8(ascii: ",")) }
    slots[slot].count += 1
  }

  /// Removes the last element, whose value could not be encoded.
  func removeElement() {
    let slot = slots.count - 1
    slots[slot].count -= 1
    // The comma was written with the element.
    if slots[slot].count > 0 { bytes.truncate(to: bytes.count - 1) }
  }

  // MARK: Nested containers and superclasses

  /// Adds the writer of a nested container or superclass, at the member or element that was begun last.
  func addChild(_ step: Step) -> EncodingWriter {
    let slot = slots.count - 1
    let child = EncodingWriter(tally, depth: slots[slot].depth + 1, path: path(step))
    child.push(.none)
    if slots[slot].content == .object {
      members[members.count - 1].child = children.count
    } else {
      members.append(Member(prefix: 0, start: bytes.count, nameLength: -1, child: children.count))
    }
    // Makes `finishSlot()` rewrite the object, which inserts the child's text.
    slots[slot].isInOrder = false
    children.append(child)
    return child
  }

  /// Returns the writer of the member with a name, or `nil` without such a member.
  ///
  /// A value that was already written in this text is moved into a new writer.
  func child(named name: String, _ step: Step) -> EncodingWriter? {
    let slot = slots.count - 1
    guard let position = lastMember(named: name, from: slots[slot].firstMember, isOdd: slots[slot].hasOddName) else {
      return nil
    }
    // A second request for the same name continues the same container.
    if members[position].child >= 0 { return children[members[position].child] }
    let end = position + 1 < members.count ? members[position].end : bytes.count
    let child = EncodingWriter(tally, depth: slots[slot].depth + 1, path: path(step))
    child.push(.none)
    child.bytes.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[members[position].valueStart..<end]))
    child.slots[0].content = .value
    members[position].child = children.count
    slots[slot].isInOrder = false
    children.append(child)
    return child
  }

  private func lastMember(named name: String, from first: Int, isOdd: Bool) -> Int? {
    scratch.truncate(to: 0)
    let isPlain = scratch.append(quoting: name)
    // Names with escapes or non-ASCII text have several spellings and are compared as strings.
    guard isPlain, !isOdd else { return members.indices.dropFirst(first).last { nameText(members[$0]) == name } }
    let prefix = scratch.prefix(at: 1, length: scratch.count - 2)
    return members.indices.dropFirst(first).last { position in
      let member = members[position]
      // Two comparisons of numbers spare nearly all comparisons of bytes.
      guard member.prefix == prefix, member.nameLength == scratch.count - 2 else { return false }
      return bytes.bytes[member.nameRange].elementsEqual(scratch.bytes.dropFirst().dropLast())
    }
  }

  // MARK: Finishing

  /// Finishes the current value: closes its bracket and puts its members in order.
  func finishSlot() throws {
    // Members hold offsets in 32 bits. A record has at most 1 GiB, so no valid one is refused.
    guard bytes.count < UInt32.max else { throw misused("a value was encoded that takes more than 4 GiB") }
    let slot = slots[slots.count - 1]
    switch slot.content {
    case .nothing, .value: return
    case .object:
      if members.count > slot.firstMember { members[members.count - 1].end = bytes.count }
      if slot.isInOrder, !slot.hasOddName {
        bytes.append(UInt8(ascii: "}"))
      } else {
        try rewriteObject(slot)
      }
    case .array:
      if members.count > slot.firstMember { try rewriteArray(slot) }
      bytes.append(UInt8(ascii: "]"))
    }
    members.removeLast(members.count - slot.firstMember)
  }

  private func rewriteObject(_ slot: Slot) throws {
    scratch.truncate(to: 0)
    scratch.append(UInt8(ascii: "{"))
    if slot.hasOddName {
      for (name, value) in orderOfOddNames(slot.firstMember) { try appendMember(members[name], value: members[value]) }
    } else {
      sortMembers(from: slot.firstMember)
      for position in slot.firstMember..<members.count {
        // Of equal names the last one counts. The sort is stable, so it comes last here.
        let isReplaced = position + 1 < members.count && isSameName(members[position], members[position + 1])
        if !isReplaced { try appendMember(members[position], value: members[position]) }
      }
    }
    scratch.append(UInt8(ascii: "}"))
    bytes.truncate(to: slot.start)
    bytes.append(scratch.bytes)
  }

  /// Sorts members by name, and those of one name in the order in which they came.
  private func sortMembers(from first: Int) {
    guard members.count - first <= Self.fewMembers else {
      // The standard sort promises no stability, so equal names are compared by offset.
      let sorted = members[first...].sorted { isBefore($0, $1) || (!isBefore($1, $0) && $0.start < $1.start) }
      for (position, member) in sorted.enumerated() { members[first + position] = member }
      return
    }
    // An insertion sort, because the properties of a type are few and often nearly in order.
    for position in (first + 1)..<max(members.count, first + 1) {
      let moving = members[position]
      var place = position
      while place > first, isBefore(moving, members[place - 1]) {
        members[place] = members[place - 1]
        place -= 1
      }
      members[place] = moving
    }
  }

  private static var fewMembers: Int { 24 }

  /// Returns members in the order of their names, with equal names joined as a dictionary joins them.
  ///
  /// A joined member has the spelling that came first and the value that came last.
  private func orderOfOddNames(_ first: Int) -> [(name: Int, value: Int)] {
    var positions: [String: Int] = [:]
    var order: [(name: Int, value: Int)] = []
    for member in first..<members.count {
      let name = nameText(members[member])
      if let position = positions[name] {
        order[position].value = member
      } else {
        positions[name] = order.count
        order.append((member, member))
      }
    }
    // Sorted by bytes: `String` compares by canonical equivalence, which is another order.
    let names = order.map { Array(nameText(members[$0.name]).utf8) }
    return order.indices.sorted { names[$0].lexicographicallyPrecedes(names[$1]) }.map { order[$0] }
  }

  private func appendMember(_ name: Member, value: Member) throws {
    if scratch.count > 1 { scratch.append(UInt8(ascii: ",")) }
    // Nearly always name and value lie side by side and are copied in one step.
    if value.child < 0, name.start == value.start {
      return scratch.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[name.start..<value.end]))
    }
    scratch.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[name.start..<name.valueStart]))
    if value.child >= 0 {
      try children[value.child].finish(into: &scratch)
    } else {
      scratch.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[value.valueStart..<value.end]))
    }
  }

  private func rewriteArray(_ slot: Slot) throws {
    var text = ByteBuffer(capacity: 2 * (bytes.count - slot.start) + 16)
    var start = slot.start
    for member in members[slot.firstMember...] {
      text.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<member.start]))
      try children[member.child].finish(into: &text)
      start = member.start
    }
    text.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<bytes.count]))
    bytes.truncate(to: slot.start)
    bytes.append(text.bytes)
  }

  /// Finishes the text of a nested writer, and appends it to the text around.
  private func finish(into text: inout ByteBuffer) throws {
    // While an inner value is unfinished, the text lacks its end.
    guard slots.count == 1 else { throw misused("a container was finished while a value inside it was encoded") }
    // A superclass's encoder that nothing was written to gives an empty object, as with Foundation.
    if slots[0].content == .nothing { bytes.append("{}") }
    try finishSlot()
    text.append(bytes.bytes)
    // Without slots, a container that was kept until now fails instead of writing text that is lost.
    slots.removeAll()
  }

  // MARK: Names

  private func nameText(_ member: Member) -> String {
    JSONString.text(UnsafeRawBufferPointer(rebasing: bytes.bytes[member.nameRange]))
  }

  @inline(__always) private func isBefore(_ left: Member, _ right: Member) -> Bool {
    left.prefix != right.prefix ? left.prefix < right.prefix : isBeforeInFull(left, right)
  }

  // Rarely needed, so it is kept out of the inlined comparison.
  @inline(never) private func isBeforeInFull(_ left: Member, _ right: Member) -> Bool {
    let text = bytes.bytes
    return text[left.nameRange].lexicographicallyPrecedes(text[right.nameRange])
  }

  private func isSameName(_ left: Member, _ right: Member) -> Bool {
    let text = bytes.bytes
    return left.prefix == right.prefix && left.nameLength == right.nameLength && text[left.nameRange].elementsEqual(text[right.nameRange])
  }
}

/// A collection that encodes itself as an array whose order differs between launches of a program.
///
/// The encoder sorts such arrays. Equal values then have equal bytes, which merges, comparisons and backends rely on.
protocol UnorderedEncodable {
  /// Number of consecutive array elements that form one entry and stay together.
  static var elementsPerEntry: Int { get }
}

extension Set: UnorderedEncodable {
  static var elementsPerEntry: Int { 1 }
}

/// A dictionary whose keys cannot be names of JSON encodes itself as an array of keys and values in turn.
extension Dictionary: UnorderedEncodable {
  static var elementsPerEntry: Int { 2 }
}

extension EncodingWriter {
  /// Sorts the entries of the array at the end of the text by their bytes.
  ///
  /// Cost: a scan of the array, and a sort of its entries.
  func sortEntries(from start: Int, elementsPerEntry: Int) {
    var entries: [Range<Int>] = []
    var position = start + 1
    while position < bytes.count - 1 {
      let first = position
      for element in 1...elementsPerEntry {
        position = endOfValue(from: position)
        // The comma between a key and its value is part of the entry.
        if element < elementsPerEntry { position += 1 }
      }
      entries.append(first..<position)
      position += 1
    }
    let text = bytes.bytes
    let part = { (entry: Range<Int>) in UnsafeRawBufferPointer(rebasing: text[entry]) }
    let sorted = entries.sorted { part($0).precedesInBytes(part($1)) }
    // An array that is in order already need not be copied.
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
