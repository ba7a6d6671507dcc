internal import Dispatch

extension RecordMap {
  /// Returns the number of records that do not decode, and the error of one of them.
  ///
  /// `undecodable(_:)` decodes every record that was not decoded before. Cost: the first call examines all records, and decodes only those
  /// that were not read before. Later calls examine only changed records and records that did not decode.
  func undecodable<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> (count: Int, first: RepositoryError?) {
    var count = 0
    var first: RepositoryError?
    try forEachDoubtful { slot in
      guard let error = slot.failure(coder) else { return }
      count += 1
      if first == nil { first = error }
    }
    return (count, first)
  }

  /// Returns all records with their errors if none of them decodes, and an empty array if a record decodes or if there are no records.
  ///
  /// A record of another schema version counts as one that decodes. An older record is migrated when it is first read, and a newer record
  /// waits for an update of the app.
  ///
  /// Cost: decodes records up to the first record that decodes. In a collection of the right type, the first record usually decodes, so
  /// only that record is decoded.
  func failuresOfAll<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> [(slot: RecordSlot, error: RepositoryError)] {
    var failures: [(RecordSlot, RepositoryError)] = []
    try visitOneByOne { slot in
      if slot.schemaVersion == coder.schemaVersion {
        do throws(RepositoryError) { _ = try slot.peek(coder) } catch {
          failures.append((slot, error))
          return true
        }
      }
      // A single record that decodes shows that the type of the repository is the right one for the collection.
      failures = []
      return false
    }
    return failures
  }

  /// Checks that every record decodes.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and the hashes of the first eight of their keys.
  func checkDecodable<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) {
    var failed: [RecordSlot] = []
    try forEachDoubtful { slot in if slot.failure(coder) != nil { failed.append(slot) } }
    guard !failed.isEmpty else { return }
    // The map visits records in no fixed order, so they are sorted for the error to name the same keys at every launch.
    failed.sort { $0.key < $1.key }
    let named = failed.prefix(Self.namedKeys).map { "\($0.key)" }.joined(separator: ", ")
    let rest = failed.count > Self.namedKeys ? " and \(failed.count - Self.namedKeys) more" : ""
    throw RepositoryError(
      .decodingFailed,
      "\(failed.count) of \(count) records do not decode: \(named)\(rest); they would be left out; `snapshot.undecodable` lists them",
      keyHash: failed[0].key.hash, underlying: failed[0].failure(coder))
  }

  /// Largest number of keys that the error for undecodable records names.
  private static var namedKeys: Int { 8 }
}

extension RecordMap {
  /// Decodes records on all cores, and returns the values of all records that decode, in key order.
  @concurrent func items<Item>(_ coder: RecordCoder<Item>) async throws(RepositoryError) -> [Item] {
    await makeSlots()
    let slots = try ordered()
    // If every record was decoded before, the values are returned without starting any tasks.
    if let items = Self.items(of: slots, coder, decoding: false) { return items }
    await Self.decode(slots.filter(\.isEncoded), coder)
    return Self.items(of: slots, coder, decoding: true) ?? []
  }

  /// Returns the values of all slots (records in memory) that decode.
  ///
  /// If `decoding` is false, the function returns `nil` at the first slot that was not decoded yet.
  private static func items<Item>(of slots: [RecordSlot], _ coder: RecordCoder<Item>, decoding: Bool) -> [Item]? {
    var items: [Item] = []
    items.reserveCapacity(slots.count)
    for slot in slots {
      guard decoding || !slot.isEncoded else { return nil }
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch { continue }  // `snapshot.undecodable` lists the record
    }
    return items
  }

  /// Decodes on all cores the records that were not decoded yet, and keeps their values.
  ///
  /// Cost besides decoding: the first call examines each record. A later call examines only the records that did not decode and the records
  /// that were written since the previous call.
  @concurrent func decode<Item>(_ coder: RecordCoder<Item>) async throws(RepositoryError) {
    // The values of records in the storage are not kept, so decoding them in advance would save nothing.
    if isPaged { return }
    await makeSlots()
    var encoded: [RecordSlot] = []
    try forEachDoubtful { if $0.isEncoded { encoded.append($0) } }
    await Self.decode(encoded, coder)
  }

  /// Returns the number of records that do not decode.
  ///
  /// If few records are not decoded yet, they are decoded on the caller's actor. If many records are not decoded yet, they are decoded on
  /// other threads, so that the caller's actor stays free.
  nonisolated(nonsending) func undecodableCount<Item>(_ coder: RecordCoder<Item>) async throws(RepositoryError) -> Int {
    let few = ConcurrentMap.partSize
    // Examining a few records takes less time than a hop to another executor. The main thread must not wait for records in the storage.
    let isQuick = !isPaged || doubtfulCount == 0 || !isOnMainThread
    if isQuick, doubtfulCount <= 8 * few, try tally.untouched <= few { return try undecodable(coder).count }
    return try await undecodableCountElsewhere(coder)
  }

  @concurrent private func undecodableCountElsewhere<Item>(_ coder: RecordCoder<Item>) async throws(RepositoryError) -> Int {
    if isPaged {
      return try await DispatchQueue.global(qos: .userInitiated).run { () throws(RepositoryError) in try undecodable(coder).count }
    }
    try await decode(coder)
    return try tally.undecodable
  }

  /// Makes the slots (objects in memory) of all records, on all cores.
  private func makeSlots() async {
    let size = 8 * ConcurrentMap.partSize
    let count = unmadeCount
    // Up to `size` slots cost less if they are made one by one at their first read than if tasks are started to make them.
    guard count > size else { return }
    await withTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: count, by: size) { group.addTask { makeSlots(start..<min(start + size, count)) } }
    }
  }

  private static func decode<Item>(_ slots: [RecordSlot], _ coder: RecordCoder<Item>) async {
    _ = await ConcurrentMap.parts(slots) { part in
      for slot in part {
        do throws(RepositoryError) { let _: Item = try slot.value(coder) } catch { continue }  // the record's slot keeps the error
      }
    }
  }
}
