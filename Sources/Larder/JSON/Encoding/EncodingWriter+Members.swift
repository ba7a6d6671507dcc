internal import Foundation

extension EncodingWriter {
  /// A member of an unfinished object, or an element of an unfinished array whose text is in a writer of its own.
  struct Member {
    /// First eight bytes of the name, most significant first, by which most names are compared in one step.
    let prefix: UInt64
    private let offset: UInt32
    private let length: Int32
    private var endOffset: UInt32 = 0
    private var childPosition: Int32 = -1

    init(prefix: UInt64, start: Int, nameLength: Int, child: Int = -1) {
      self.prefix = prefix
      // Offsets of 4 GiB and more do not fit into 32 bits and are cut off here. `finishSlot()` throws for a text of 4 GiB or more, so such
      // a text is never stored.
      offset = UInt32(truncatingIfNeeded: start)
      length = Int32(truncatingIfNeeded: nameLength)
      childPosition = Int32(truncatingIfNeeded: child)
    }

    /// Offset of the name's opening quotation mark or, for an array element, of the element.
    var start: Int { Int(offset) }
    /// Length of the name as written, without quotation marks, or -1 for an array element.
    var nameLength: Int { Int(length) }
    /// Offset of the value's end, which is set when the next member begins or the object ends.
    var end: Int {
      get { Int(endOffset) }
      set { endOffset = UInt32(truncatingIfNeeded: newValue) }
    }
    /// Position of the value's own writer in ``EncodingWriter/children``, or -1 if the value is in this writer's text.
    var child: Int {
      get { Int(childPosition) }
      set { childPosition = Int32(truncatingIfNeeded: newValue) }
    }
    var nameRange: Range<Int> { start + 1..<start + 1 + nameLength }
    /// Offset of the member's value, behind the quoted name and the colon.
    var valueStart: Int { start + nameLength + 3 }
  }

  /// Begins a member of the current object: writes its name, so that the caller writes its value next.
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
    // An escaped name must be sorted by its unescaped characters, which may have another order than its written bytes.
    if !isPlain { slots[slot].hasOddName = true }
    // The flag `isInOrder` makes sorting unnecessary for an object whose members are written in order of their names.
    if !isFirst, let last = members.last, !isBefore(last, member) { slots[slot].isInOrder = false }
    members.append(member)
  }

  /// Removes the last member of the current object, because its value could not be encoded.
  func removeMember() {
    let member = members.removeLast()
    let isFirst = members.count == slots[slots.count - 1].firstMember
    bytes.truncate(to: isFirst ? member.start : member.start - 1)
  }

  /// Begins an element of the current array: writes a comma if needed, so that the caller writes the element next.
  @inline(__always) func beginElement() {
    let slot = slots.count - 1
    if slots[slot].count > 0 { bytes.append(UInt8(ascii: ",")) }
    slots[slot].count += 1
  }

  /// Removes the last element of the current array, because it could not be encoded.
  func removeElement() {
    let slot = slots.count - 1
    slots[slot].count -= 1
    // `beginElement()` wrote a comma before every element but the first, and a comma without an element is no JSON.
    if slots[slot].count > 0 { bytes.truncate(to: bytes.count - 1) }
  }

  // MARK: Nested containers and superclasses

  /// Adds a writer for a nested container or superclass, at the member or element that was begun last.
  func addChild(_ step: Step) -> EncodingWriter {
    let slot = slots.count - 1
    let child = EncodingWriter(tally, depth: slots[slot].depth + 1, path: path(step))
    child.push(.none)
    if slots[slot].content == .object {
      members[members.count - 1].child = children.count
    } else {
      members.append(Member(prefix: 0, start: bytes.count, nameLength: -1, child: children.count))
    }
    // An object that is not in order is rewritten by `finishSlot()`, which inserts the text of the new writer.
    slots[slot].isInOrder = false
    children.append(child)
    return child
  }

  /// Returns the writer of the current object's member with a name, or `nil` if there is no such member.
  ///
  /// A member whose value is already in the text of this writer gets a new writer, into which the value is copied.
  func child(named name: String, _ step: Step) -> EncodingWriter? {
    let slot = slots.count - 1
    guard let position = lastMember(named: name, from: slots[slot].firstMember, isOdd: slots[slot].hasOddName) else {
      return nil
    }
    // A second request for a container of the same name must continue the first container, as with Foundation.
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
    // Names with escapes or non-ASCII text have several spellings as bytes, so they are compared as strings.
    guard isPlain, !isOdd else { return members.indices.dropFirst(first).last { nameText(members[$0]) == name } }
    let prefix = scratch.prefix(at: 1, length: scratch.count - 2)
    return members.indices.dropFirst(first).last { position in
      let member = members[position]
      // Comparing two numbers first makes it unnecessary to compare the bytes of nearly all names.
      guard member.prefix == prefix, member.nameLength == scratch.count - 2 else { return false }
      return bytes.bytes[member.nameRange].elementsEqual(scratch.bytes.dropFirst().dropLast())
    }
  }

  // MARK: Finishing

  /// Finishes the current value.
  ///
  /// Sorts the members of an object by name, inserts the texts of nested writers, and writes the closing bracket.
  func finishSlot() throws {
    // Members store offsets in 32 bits. A record has at most 1 GiB, so this check refuses no valid record.
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
        // Of members with equal names the last one is written, as a dictionary would keep it. The sort is stable, so the member that was
        // written last is also the last of its name after the sort.
        let isReplaced = position + 1 < members.count && isSameName(members[position], members[position + 1])
        if !isReplaced { try appendMember(members[position], value: members[position]) }
      }
    }
    scratch.append(UInt8(ascii: "}"))
    bytes.truncate(to: slot.start)
    bytes.append(scratch.bytes)
  }

  /// Sorts members by name, and members with equal names in the order in which they were written.
  private func sortMembers(from first: Int) {
    guard members.count - first <= Self.fewMembers else {
      // The standard library does not promise a stable sort, so members with equal names are compared by offset.
      let sorted = members[first...].sorted { isBefore($0, $1) || (!isBefore($1, $0) && $0.start < $1.start) }
      for (position, member) in sorted.enumerated() { members[first + position] = member }
      return
    }
    // An insertion sort is fast here, because a type has few properties and often encodes them nearly in order.
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

  /// Returns the members of an object in the order of their names, with members of equal names joined as a dictionary joins them.
  ///
  /// A joined member has the spelling of the first and the value of the last of the members with its name.
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
    // The names are sorted by bytes, as in all other objects. `String` compares by canonical equivalence, which is another order.
    let names = order.map { Array(nameText(members[$0.name]).utf8) }
    return order.indices.sorted { names[$0].lexicographicallyPrecedes(names[$1]) }.map { order[$0] }
  }

  private func appendMember(_ name: Member, value: Member) throws {
    if scratch.count > 1 { scratch.append(UInt8(ascii: ",")) }
    // Name and value of a member are mostly side by side in the text and are then copied in one step.
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

  /// Finishes the text of a nested writer, and appends it to the text of the writer around it.
  private func finish(into text: inout ByteBuffer) throws {
    // More than one slot means that a value inside the container is unfinished, so the text of that value lacks its end.
    guard slots.count == 1 else { throw misused("a container was finished while a value inside it was encoded") }
    // A superclass encoder to which nothing was written gives an empty object, as with Foundation.
    if slots[0].content == .nothing { bytes.append("{}") }
    try finishSlot()
    text.append(bytes.bytes)
    // A type may keep a container after the container was finished, and write to it again. Without slots such a write fails. With slots,
    // the text of such a write would be lost silently.
    slots.removeAll()
  }

  // MARK: Names

  private func nameText(_ member: Member) -> String {
    JSONString.text(UnsafeRawBufferPointer(rebasing: bytes.bytes[member.nameRange]))
  }

  @inline(__always) private func isBefore(_ left: Member, _ right: Member) -> Bool {
    left.prefix != right.prefix ? left.prefix < right.prefix : isBeforeInFull(left, right)
  }

  // Most names differ in their first eight bytes, so this call is rare and is kept out of the inlined comparison.
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
/// The encoder sorts such an array. Equal values then have equal bytes, on which merges, comparisons and backends rely.
protocol UnorderedEncodable {
  /// Number of consecutive array elements that form one entry, which sorting keeps together.
  static var elementsPerEntry: Int { get }
}

extension Set: UnorderedEncodable {
  static var elementsPerEntry: Int { 1 }
}

/// A dictionary whose keys cannot be JSON names, which encodes itself as an array of alternating keys and values.
extension Dictionary: UnorderedEncodable {
  static var elementsPerEntry: Int { 2 }
}

extension EncodingWriter {
  /// Sorts the entries of the array at the end of the text by their bytes, where an entry is one element or a key with its value.
  ///
  /// Cost: a scan of the array's text, and a sort of its entries.
  func sortEntries(from start: Int, elementsPerEntry: Int) {
    var entries: [Range<Int>] = []
    var position = start + 1
    while position < bytes.count - 1 {
      let first = position
      for element in 1...elementsPerEntry {
        position = endOfValue(from: position)
        // The comma between a key and its value belongs to the entry, so that both are moved together.
        if element < elementsPerEntry { position += 1 }
      }
      entries.append(first..<position)
      position += 1
    }
    let text = bytes.bytes
    let part = { (entry: Range<Int>) in UnsafeRawBufferPointer(rebasing: text[entry]) }
    let sorted = entries.sorted { part($0).precedesInBytes(part($1)) }
    // An array that is sorted already is left as it is, which saves the copy.
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
