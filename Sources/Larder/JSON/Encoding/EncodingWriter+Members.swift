internal import Foundation

extension EncodingWriter {
  /// A member of an unfinished object, or an element of an unfinished array if the element has an `EncodingWriter` of its own.
  struct Member {
    /// The first eight bytes of the name as one big-endian number, so that one comparison of numbers orders most names.
    let prefix: UInt64
    private let offset: UInt32
    private let length: Int32
    private var endOffset: UInt32 = 0
    private var childPosition: Int32 = -1

    init(prefix: UInt64, start: Int, nameLength: Int, child: Int = -1) {
      self.prefix = prefix
      // Offsets of 4 GiB and more do not fit into 32 bits and are truncated. `finishSlot()` throws for a text of 4 GiB or more, so a text
      // of 4 GiB is never stored.
      offset = UInt32(truncatingIfNeeded: start)
      length = Int32(truncatingIfNeeded: nameLength)
      childPosition = Int32(truncatingIfNeeded: child)
    }

    /// Offset of the opening quotation mark of the member's name or, for an array element, the offset of the element.
    var start: Int { Int(offset) }
    /// Length in bytes of the member's name as it is written, without quotation marks, or -1 for an array element.
    var nameLength: Int { Int(length) }
    /// Offset behind the member's value, which is set when the next member begins or the object ends.
    var end: Int {
      get { Int(endOffset) }
      set { endOffset = UInt32(truncatingIfNeeded: newValue) }
    }
    /// Index in ``EncodingWriter/children`` of the member's own writer, or -1 if the member's value has no writer of its own.
    var child: Int {
      get { Int(childPosition) }
      set { childPosition = Int32(truncatingIfNeeded: newValue) }
    }
    var nameRange: Range<Int> { start + 1..<start + 1 + nameLength }
    /// Offset of the member's value, which begins behind the quoted name and the colon.
    var valueStart: Int { start + nameLength + 3 }
  }

  /// Begins a member of the current object by writing the member's name and a colon.
  ///
  /// The caller writes the member's value next.
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
    // Member names are sorted by their unescaped characters, and the written bytes of an escaped name may sort differently.
    if !isPlain { slots[slot].hasOddName = true }
    // The flag `isInOrder` makes sorting unnecessary for an object whose members are written in order of their names.
    if !isFirst, let last = members.last, !isBefore(last, member) { slots[slot].isInOrder = false }
    members.append(member)
  }

  /// Removes the last member of the current object, after the member's value could not be encoded.
  func removeMember() {
    let member = members.removeLast()
    let isFirst = members.count == slots[slots.count - 1].firstMember
    bytes.truncate(to: isFirst ? member.start : member.start - 1)
  }

  /// Begins an element of the current array, with a comma before every element but the first.
  ///
  /// The caller writes the element next.
  @inline(__always) func beginElement() {
    let slot = slots.count - 1
    if slots[slot].count > 0 { bytes.append(UInt8(ascii: ",")) }
    slots[slot].count += 1
  }

  /// Removes the last element of the current array, after the element could not be encoded.
  func removeElement() {
    let slot = slots.count - 1
    slots[slot].count -= 1
    // `beginElement()` wrote a comma before every element but the first, and a comma that no element follows is not valid JSON.
    if slots[slot].count > 0 { bytes.truncate(to: bytes.count - 1) }
  }

  // MARK: Nested containers and superclasses

  /// Adds a writer for a nested container or superclass, as the value of the member or array element that was begun last.
  func addChild(_ step: Step) -> EncodingWriter {
    let slot = slots.count - 1
    let child = EncodingWriter(tally, depth: slots[slot].depth + 1, path: path(step))
    child.push(.none)
    if slots[slot].content == .object {
      members[members.count - 1].child = children.count
    } else {
      members.append(Member(prefix: 0, start: bytes.count, nameLength: -1, child: children.count))
    }
    // If `isInOrder` is false, `finishSlot()` rewrites the object or array and inserts the texts of nested writers.
    slots[slot].isInOrder = false
    children.append(child)
    return child
  }

  /// Returns an `EncodingWriter` for the current object's member with a name, or `nil` if there is no such member.
  ///
  /// If the member's value is already in the text of the enclosing writer, the value is copied into a new writer.
  func child(named name: String, _ step: Step) -> EncodingWriter? {
    let slot = slots.count - 1
    guard let position = lastMember(named: name, from: slots[slot].firstMember, isOdd: slots[slot].hasOddName) else {
      return nil
    }
    // If a type requests a nested container twice under one name, the second container continues the first one, as with Foundation.
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
      // Comparing `prefix` and the length first avoids comparing the bytes of nearly all names.
      guard member.prefix == prefix, member.nameLength == scratch.count - 2 else { return false }
      return bytes.bytes[member.nameRange].elementsEqual(scratch.bytes.dropFirst().dropLast())
    }
  }

  // MARK: Finishing

  /// Finishes the innermost unfinished value.
  ///
  /// Sorts the members of an object by name, inserts the texts of nested writers, and writes the closing bracket.
  func finishSlot() throws {
    // Members store offsets in 32 bits, so a text of 4 GiB or more is refused. A record has at most 1 GiB, so no valid record is refused.
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
        // If several members have the same name, only the last of them is written, as a dictionary would keep only the last value. The sort
        // is stable, so the member that was written last is also the last of its name after the sort.
        let isReplaced = position + 1 < members.count && isSameName(members[position], members[position + 1])
        if !isReplaced { try appendMember(members[position], value: members[position]) }
      }
    }
    scratch.append(UInt8(ascii: "}"))
    bytes.truncate(to: slot.start)
    bytes.append(scratch.bytes)
  }

  /// Sorts the members of an object by name, and keeps members with equal names in the order in which they were written.
  private func sortMembers(from first: Int) {
    guard members.count - first <= Self.fewMembers else {
      // The standard library does not promise a stable sort, so members with equal names are compared by offset.
      let sorted = members[first...].sorted { isBefore($0, $1) || (!isBefore($1, $0) && $0.start < $1.start) }
      for (position, member) in sorted.enumerated() { members[first + position] = member }
      return
    }
    // An insertion sort is fast for few members, and a type often encodes its properties nearly in order.
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

  /// Returns the members of an object in the order of their names, with members of equal names joined into one member.
  ///
  /// Members with equal names become one member, with the spelling of the first name and the value of the last member.
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
    // The names are sorted by their UTF-8 bytes, as in all other objects. The order of `String` values by `<` depends on canonical
    // equivalence and differs from the order of UTF-8 bytes.
    let names = order.map { Array(nameText(members[$0.name]).utf8) }
    return order.indices.sorted { names[$0].lexicographicallyPrecedes(names[$1]) }.map { order[$0] }
  }

  private func appendMember(_ name: Member, value: Member) throws {
    if scratch.count > 1 { scratch.append(UInt8(ascii: ",")) }
    // In most members the value follows the name directly in the text, and both are copied in one step.
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

  /// Finishes the text of a nested writer, and appends the text to the enclosing writer's text.
  private func finish(into text: inout ByteBuffer) throws {
    // If the nested writer has more than one slot, a value inside the container is unfinished, so the text of that value lacks its end.
    guard slots.count == 1 else { throw misused("a container was finished while a value inside it was encoded") }
    // If nothing was written to a superclass encoder, its text is an empty object, as with Foundation.
    if slots[0].content == .nothing { bytes.append("{}") }
    try finishSlot()
    text.append(bytes.bytes)
    // A type may store a coding container, and write to the container after it was finished. With the slots removed, a write to the
    // finished container fails, while otherwise the written text would be lost silently.
    slots.removeAll()
  }

  // MARK: Names

  private func nameText(_ member: Member) -> String {
    JSONString.text(UnsafeRawBufferPointer(rebasing: bytes.bytes[member.nameRange]))
  }

  @inline(__always) private func isBefore(_ left: Member, _ right: Member) -> Bool {
    left.prefix != right.prefix ? left.prefix < right.prefix : isBeforeInFull(left, right)
  }

  // Most names differ in their first eight bytes, so the comparison of whole names is rare and is not inlined.
  @inline(never) private func isBeforeInFull(_ left: Member, _ right: Member) -> Bool {
    let text = bytes.bytes
    return text[left.nameRange].lexicographicallyPrecedes(text[right.nameRange])
  }

  private func isSameName(_ left: Member, _ right: Member) -> Bool {
    let text = bytes.bytes
    return left.prefix == right.prefix && left.nameLength == right.nameLength && text[left.nameRange].elementsEqual(text[right.nameRange])
  }
}

/// A collection type that encodes itself as an array whose order can differ between launches of a program.
///
/// The encoder sorts the array of an `UnorderedEncodable` collection. Because of the sorting, equal values have equal JSON bytes, on which
/// merges, comparisons and backends rely.
protocol UnorderedEncodable {
  /// Number of consecutive array elements that form one entry of the collection: 1, or 2 for a key with its value.
  static var elementsPerEntry: Int { get }
}

extension Set: UnorderedEncodable {
  static var elementsPerEntry: Int { 1 }
}

/// A dictionary encodes itself as an array of alternating keys and values if its keys cannot be JSON names.
extension Dictionary: UnorderedEncodable {
  static var elementsPerEntry: Int { 2 }
}

extension EncodingWriter {
  /// Sorts the entries of the array that was written last by their bytes, where an entry is one element or a key with its value.
  ///
  /// Cost: a scan of the array's text, and a sort of its entries.
  func sortEntries(from start: Int, elementsPerEntry: Int) {
    var entries: [Range<Int>] = []
    var position = start + 1
    while position < bytes.count - 1 {
      let first = position
      for element in 1...elementsPerEntry {
        position = endOfValue(from: position)
        // The comma between a dictionary's key and value belongs to the entry, so that key and value are moved together.
        if element < elementsPerEntry { position += 1 }
      }
      entries.append(first..<position)
      position += 1
    }
    let text = bytes.bytes
    let part = { (entry: Range<Int>) in UnsafeRawBufferPointer(rebasing: text[entry]) }
    let sorted = entries.sorted { part($0).precedesInBytes(part($1)) }
    // An array that is already sorted is not copied.
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
