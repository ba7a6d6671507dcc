/// Decoding many records at once, on as many cores as there are.
enum ParallelDecoding {
  /// How many records one task decodes; fewer in all are decoded where they are asked for.
  static let chunk = 512

  /// The values of all records that decode, in key order.
  @concurrent static func items<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async -> [Item] {
    let slots = records.ordered()
    await touch(slots, coder)
    var items: [Item] = []
    items.reserveCapacity(slots.count)
    for slot in slots {
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch { continue }  // listed by `snapshot.undecodable`
    }
    return items
  }

  /// Decodes what nobody has touched yet.
  ///
  /// Cost beside that: a look at each record the first time, then at what was written since.
  @concurrent static func touch<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async {
    var untouched: [RecordSlot] = []
    records.forEachDoubtful { if $0.isEncoded { untouched.append($0) } }
    await touch(untouched, coder)
  }

  /// Returns how many records do not decode: counted here when few are left to look at, away from the caller's actor when many are.
  nonisolated(nonsending) static func undecodableCount<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async -> Int {
    if records.doubtfulCount <= 8 * chunk, records.tally.untouched <= chunk { return records.undecodable(coder).count }
    return await undecodableCountElsewhere(records, coder)
  }

  @concurrent private static func undecodableCountElsewhere<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async -> Int {
    let tally = records.tally
    if tally.untouched == 0 { return tally.undecodable }
    await touch(records, coder)
    return records.tally.undecodable
  }

  private static func touch<Item>(_ slots: [RecordSlot], _ coder: RecordCoder<Item>) async {
    await withTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: slots.count, by: chunk) {
        let part = slots[start..<min(start + chunk, slots.count)]
        guard part.contains(where: \.isEncoded) else { continue }
        group.addTask { decode(part, coder) }
      }
    }
  }

  /// Touches the records, which keep their values.
  private static func decode<Item>(_ slots: ArraySlice<RecordSlot>, _ coder: RecordCoder<Item>) {
    for slot in slots {
      do throws(RepositoryError) { let _: Item = try slot.value(coder) } catch { continue }  // the slot keeps the error
    }
  }
}
