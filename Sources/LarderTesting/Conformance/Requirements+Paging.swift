internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules of a `PagingBackend`.
  static let paging: [BackendRequirement] = [
    BackendRequirement(
      "openPagedSummarizes", "opening without records passes the tombstones and counts each collection", needs: [.paging]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b", "[1,2,3]", version: 3), .put("c", in: "others"))
      try trial.commit(.delete("a"), .put("d", version: 2))
      try trial.close()
      try trial.openPaged()
      // The second opening may take another path, because the first one may have stored the summary.
      try trial.commit(.delete("c", in: "others"), .put("e", version: 2), .put("d", "{}"))
      try trial.close()
      try trial.openPaged()
    },
    BackendRequirement(
      "aBaseKeepsItsCommit", "a base returns the records of its commit, also after later commits and a checkpoint", needs: [.paging]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"), .put("é"), .put("", in: "others"))
      try trial.close()
      let backend = try trial.openPaged()
      let (first, before) = (try backend.keepBase(), trial.expected)
      try trial.commit(.put("a", "2"), .delete("b"), .put("c"))
      let (second, between) = (try backend.keepBase(), trial.expected)
      try backend.checkpoint()
      try trial.commit(.delete("a"), .put("d"))
      try trial.compare(first, at: 1, with: before)
      try trial.compare(second, at: 2, with: between)
    },
    BackendRequirement(
      "anIndexFollowsItsBatches", "a stored index has the keys of its batches, a base keeps them, and an unnamed index is dropped",
      needs: [.paging]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("", in: "others"))
      try trial.close()
      var backend = try trial.openPaged()
      // A backend may leave indexes to the store, which then keeps them in memory.
      guard backend.storesIndexes else { return }
      let index = StoredIndexID(collection: "records", name: "ordered(x)")
      try backend.extendIndex(index, by: ["b", "d", "dd"].map(key), isFirst: true)
      try trial.commit([[.put("b")]], edits: [IndexEdit(index: index, removed: key("d"), added: key("a"))])
      try trial.require(!backend.holdsIndex(index), "an index is held before it is complete")
      try backend.extendIndex(index, by: [key("e"), Data([0xFF, 0])], isFirst: false)
      try backend.storeBoundaries([Data(), key("c")], of: index)
      let (first, before) = (try backend.keepBase(), [key("a"), key("b"), key("dd"), key("e"), Data([0xFF, 0])])
      try trial.commit([[.put("c")]], edits: [IndexEdit(index: index, removed: Data([0xFF, 0]), added: nil)])
      // A batch that changes another collection need not name the index.
      try trial.commit(.put("z", in: "others"))
      try trial.compare(index, in: first, with: before)
      try trial.compare(index, in: try backend.keepBase(), with: Array(before.dropLast()))
      try trial.close()
      backend = try trial.openPaged()
      try trial.require(backend.holdsIndex(index), "a complete index is missing after the next opening")
      try trial.compare(index, in: try backend.keepBase(), with: Array(before.dropLast()))
      try backend.storeBoundaries([Data()], of: index)
      try trial.commit([[.put("d")]], edits: [IndexEdit(index: index, removed: key("none"), added: nil)])
      try trial.require(
        !backend.holdsIndex(index) || isDamaged(index, in: try backend.keepBase()),
        "an index is held after an edit that removes a missing key")
      try backend.extendIndex(index, by: [key("k")], isFirst: true)
      try backend.storeBoundaries([Data()], of: index)
      try trial.commit(.put("e"))
      try trial.require(!backend.holdsIndex(index), "an index is held after a batch that changes its collection and does not name it")
      try trial.close()
      backend = try trial.openPaged()
      try trial.require(!backend.holdsIndex(index), "a dropped index is there after the next opening")
    },
  ]

  /// Returns true if a base finds damage in the keys of an index.
  private static func isDamaged(_ index: StoredIndexID, in base: any StoredBase) -> Bool {
    do throws(RepositoryError) {
      _ = try base.indexKeys(of: index, from: Data(), below: nil)
      return false
    } catch {
      return error.code == .corrupted
    }
  }

  private static func key(_ text: String) -> Data { Data(text.utf8) }
}

extension Trial {
  /// Opens a new backend on the store without its records, and compares its tombstones and its summary with the expected records.
  ///
  /// - Returns: The open backend.
  @discardableResult
  func openPaged() throws -> any PagingBackend {
    guard let backend = try place.makeBackend() as? any PagingBackend else {
      throw Violation(seen: "the factory lists the capability paging, and its backend is no PagingBackend")
    }
    var tombstones: [StoredRecord] = []
    let opening = try backend.openPaged(StoreOptions()) { tombstones.append($0) }
    take(backend)
    let report = try backend.recover(opening.report)
    try require(report.commit.number == commit, "opening without records reports commit \(report.commit) instead of \(commit)")
    let buried = expected.values.filter { $0.value == nil }
    try require(Set(tombstones.map(\.address)) == Set(buried.map(\.address)), "opening without records passes other tombstones")
    try require(tombstones.allSatisfy { $0.value == nil }, "opening without records passes a record")
    let kept = Dictionary(grouping: expected.values.filter { $0.value != nil }, by: \.collection)
    try require(Set(opening.collections.map(\.name)) == Set(kept.keys), "the summary has other collections than the store")
    for summary in opening.collections {
      let records = kept[summary.name] ?? []
      try require(summary.recordCount == records.count, "\(summary.name) counts \(summary.recordCount) records, not \(records.count)")
      try require(summary.byteCount >= records.reduce(0) { $0 + ($1.value?.count ?? 0) }, "\(summary.name) counts too few bytes")
      try require(
        records.allSatisfy { summary.schemaVersions.contains($0.schemaVersion) },
        "\(summary.name) has a record outside the schema versions \(summary.schemaVersions)")
    }
    return backend
  }

  /// Compares the keys of an index in a base with the expected keys, which must ascend.
  func compare(_ index: StoredIndexID, in base: any StoredBase, with keys: [Data]) throws {
    let boundaries = try base.boundaries(of: index)
    try require(
      boundaries.first == Data() && zip(boundaries, boundaries.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) },
      "the boundaries of an index do not ascend from an empty key")
    for (first, lower) in ([Data()] + keys).enumerated() {
      for (last, upper) in (keys.map(Optional.some) + [nil]).enumerated() where first <= last + 1 {
        let expected = Array(keys[max(first - 1, 0)..<max(last, max(first - 1, 0))])
        let found = try base.indexKeys(of: index, from: lower, below: upper)
        try require(found == expected, "a range of an index has other keys, or another order")
        try require(try base.indexKeyCount(of: index, from: lower, below: upper) == expected.count, "a range of an index has another count")
      }
    }
  }

  /// Compares the records of a base with the records that a store had at the base's commit.
  func compare(_ base: any StoredBase, at commit: UInt64, with records: [RecordAddress: StoredRecord]) throws {
    try require(base.commit.number == commit, "a base says commit \(base.commit) instead of \(commit)")
    for collection in Set(records.keys.map(\.collection)).union(["none"]) {
      let expected = records.values.filter { $0.collection == collection && $0.value != nil }.sorted { $0.key < $1.key }
      var found: [StoredRecord] = []
      while case let block = try base.records(of: collection, after: found.last?.key, limit: 2), !block.isEmpty { found += block }
      try require(found.map(\.key) == expected.map(\.key), "a walk through a base finds other keys in \(collection), or in another order")
      try require(found.map(\.value) == expected.map(\.value), "a walk through a base finds other values in \(collection)")
      let keys = records.keys.filter { $0.collection == collection }.map(\.key) + [RecordKey("no such key")]
      let values = try base.records(keys, of: collection).map { $0?.value }
      let wanted = keys.map { records[RecordAddress(collection: collection, key: $0)]?.value }
      try require(values == wanted, "a base returns other values in \(collection) than it must for the keys")
    }
  }
}
