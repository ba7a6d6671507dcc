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
  ]
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
