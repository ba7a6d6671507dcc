internal import Foundation
@_spi(Inspection) internal import Larder
internal import Synchronization

/// A merger of stored values, whatever their type.
protocol RecordMerger: Sendable {
  /// Merges values that are all of the newest version.
  ///
  /// - Throws: what a custom policy throws.
  func merge(
    key: RecordKey, base: StoredValue?, local: MergeSide, remote: MergeSide, coder: (any TrackedCoder)?
  ) throws -> Merged
}

/// A merger that knows no type: for collections whose repository was not opened.
struct PlainMerger: RecordMerger {
  func merge(
    key: RecordKey, base: StoredValue?, local: MergeSide, remote: MergeSide, coder: (any TrackedCoder)?
  ) throws -> Merged {
    ThreeWayMerge().merge(
      base: try base.map { (base) throws(RepositoryError) in try JSONValue(json: base.json) }, local: local, remote: remote)
  }
}

/// A merger by the policy of a collection.
struct PolicyMerger<Item: Sendable>: RecordMerger {
  let policy: MergePolicy<Item>

  func merge(
    key: RecordKey, base: StoredValue?, local: MergeSide, remote: MergeSide, coder: (any TrackedCoder)?
  ) throws -> Merged {
    let baseValue = try base.map { (base) throws(RepositoryError) in try JSONValue(json: base.json) }
    var merge = ThreeWayMerge(deleteWins: policy.deletion == .deleteWins)
    switch policy.kind {
    case .newer: merge.preference = .newer
    case .remote: merge.preference = .remote
    case .local: merge.preference = .local
    case .custom(let body):
      guard let localValue = local.value, let remoteValue = remote.value, let coder, localValue != remoteValue else { break }
      if localValue == baseValue { return Merged(value: remoteValue) }
      if remoteValue == baseValue { return Merged(value: localValue) }
      let item = { (json: JSONValue) in
        try coder.item(Item.self, of: StoredValue(schemaVersion: coder.schemaVersion, json: json.json), key: key)
      }
      let result = try body(try baseValue.map(item), try item(localValue), try item(remoteValue))
      guard let json = try coder.json(of: result) else { break }
      return Merged(value: try JSONValue(json: json))
    }
    if let coder, let localValue = local.value, let remoteValue = remote.value, !policy.counters.isEmpty || !policy.sets.isEmpty {
      let paths = MemberPaths<Item>(key: key, coder: coder, sides: [localValue, remoteValue], base: baseValue)
      for counter in policy.counters { if let path = try paths.path(of: counter) { merge.add(.counter, at: path[...]) } }
      for set in policy.sets { if let path = try paths.path(of: set) { merge.add(.set, at: path[...]) } }
    }
    return merge.merge(base: baseValue, local: local, remote: remote)
  }
}
