extension RecordMap {
  /// Returns the number of records that do not decode, with the error of one of them; the others are decoded by this.
  ///
  /// Cost: linear the first time, without decoding again what was touched before; then a look at what changed and at what did not decode.
  func undecodable<Item>(_ coder: RecordCoder<Item>) -> (count: Int, first: RepositoryError?) {
    var count = 0
    var first: RepositoryError?
    forEachDoubtful { slot in
      guard let error = slot.failure(coder) else { return }
      count += 1
      if first == nil { first = error }
    }
    return (count, first)
  }

  /// Returns all records with their errors if none of them decodes; nothing if one does, or if there are no records.
  ///
  /// A record of another version counts as one that decodes: the migration of an older one runs when it is first read, and a newer one
  /// waits for the update of the app.
  ///
  /// Cost: decodes records up to the first that decodes, which is the first of all in a collection of the right type.
  func failuresOfAll<Item>(_ coder: RecordCoder<Item>) -> [(slot: RecordSlot, error: RepositoryError)] {
    var failures: [(RecordSlot, RepositoryError)] = []
    visitOneByOne { slot in
      if slot.schemaVersion == coder.schemaVersion {
        do throws(RepositoryError) { _ = try slot.peek(coder) } catch {
          failures.append((slot, error))
          return true
        }
      }
      failures = []
      return false
    }
    return failures
  }

  /// The numbers of records that were not decoded yet, and of those among the others that do not decode.
  ///
  /// Cost: a look at each record the first time, then at those that may not decode.
  var tally: (untouched: Int, undecodable: Int) {
    var (untouched, undecodable) = (0, 0)
    forEachDoubtful { slot in
      switch slot.reading {
      case .untouched: untouched += 1
      case .unreadable: undecodable += 1
      case .readable: break
      }
    }
    return (untouched, undecodable)
  }

  /// Checks that every record decodes.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and the hashes of the keys of the first of them.
  func checkDecodable<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) {
    var failed: [RecordSlot] = []
    forEachDoubtful { slot in if slot.failure(coder) != nil { failed.append(slot) } }
    guard !failed.isEmpty else { return }
    failed.sort { $0.key < $1.key }
    let named = failed.prefix(Self.namedKeys).map { "\($0.key)" }.joined(separator: ", ")
    let rest = failed.count > Self.namedKeys ? " and \(failed.count - Self.namedKeys) more" : ""
    throw RepositoryError(
      .decodingFailed,
      "\(failed.count) of \(count) records do not decode: \(named)\(rest); they would be left out; `snapshot.undecodable` lists them",
      keyHash: failed[0].key.hash, underlying: failed[0].failure(coder))
  }

  /// The number of keys that an error names.
  private static var namedKeys: Int { 8 }
}

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
