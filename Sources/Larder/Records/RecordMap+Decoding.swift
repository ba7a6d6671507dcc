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
