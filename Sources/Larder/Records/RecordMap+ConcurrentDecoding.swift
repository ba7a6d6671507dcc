extension RecordMap {
  /// Returns the values of all records that decode, in key order; decodes on all cores.
  @concurrent func items<Item>(_ coder: RecordCoder<Item>) async -> [Item] {
    await makeSlots()
    let slots = ordered()
    if let items = Self.items(of: slots, coder, decoding: false) { return items }
    await Self.decode(slots.filter(\.isEncoded), coder)
    return Self.items(of: slots, coder, decoding: true) ?? []
  }

  /// Returns the values of all slots that decode; without `decoding`, `nil` if one was not decoded yet.
  private static func items<Item>(of slots: [RecordSlot], _ coder: RecordCoder<Item>, decoding: Bool) -> [Item]? {
    var items: [Item] = []
    items.reserveCapacity(slots.count)
    for slot in slots {
      guard decoding || !slot.isEncoded else { return nil }
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch { continue }  // listed by `snapshot.undecodable`
    }
    return items
  }

  /// Decodes the records that have not been decoded yet, on all cores; they keep their values.
  ///
  /// Cost beside that: a look at each record the first time, then at those written since.
  @concurrent func decode<Item>(_ coder: RecordCoder<Item>) async {
    await makeSlots()
    var encoded: [RecordSlot] = []
    forEachDoubtful { if $0.isEncoded { encoded.append($0) } }
    await Self.decode(encoded, coder)
  }

  /// Returns the number of records that do not decode: counted here when few are left to look at, away from the caller's actor when many
  /// are.
  nonisolated(nonsending) func undecodableCount<Item>(_ coder: RecordCoder<Item>) async -> Int {
    let few = ConcurrentMap.partSize
    if doubtfulCount <= 8 * few, tally.untouched <= few { return undecodable(coder).count }
    return await undecodableCountElsewhere(coder)
  }

  @concurrent private func undecodableCountElsewhere<Item>(_ coder: RecordCoder<Item>) async -> Int {
    await decode(coder)
    return tally.undecodable
  }

  /// Makes the slots of all records, on all cores.
  private func makeSlots() async {
    let size = 8 * ConcurrentMap.partSize
    let count = unmadeCount
    guard count > size else { return }
    await withTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: count, by: size) { group.addTask { makeSlots(start..<min(start + size, count)) } }
    }
  }

  private static func decode<Item>(_ slots: [RecordSlot], _ coder: RecordCoder<Item>) async {
    _ = await ConcurrentMap.parts(slots) { part in
      for slot in part {
        do throws(RepositoryError) { let _: Item = try slot.value(coder) } catch { continue }  // the slot keeps the error
      }
    }
  }
}
