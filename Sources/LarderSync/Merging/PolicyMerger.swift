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
    if let coder, !policy.counters.isEmpty || !policy.sets.isEmpty {
      let samples = [local.value, remote.value, baseValue].compactMap { $0 }
      let names = MemberNames<Item>(key: key, coder: coder, samples: samples)
      merge.counters = Set(policy.counters.compactMap { names.name(of: $0) })
      merge.sets = Set(policy.sets.compactMap { names.name(of: $0) })
    }
    return merge.merge(base: baseValue, local: local, remote: remote)
  }
}

/// The names that properties have in JSON, found by changing one member at a time and looking which property follows.
struct MemberNames<Item: Sendable> {
  let key: RecordKey
  let coder: any TrackedCoder
  let samples: [JSONValue]

  /// Returns the name of a property's member; `nil` where no sample has one that can be changed.
  func name(of path: PartialKeyPath<Item>) -> String? {
    for sample in samples {
      guard let object = sample.objectValue, let item = item(sample), let value = item[keyPath: path] as? any Hashable else { continue }
      for name in object.names {
        guard let member = object[name], let other = changed(member) else { continue }
        var variant = object
        variant[name] = other
        guard let changed = self.item(.object(variant)), let found = changed[keyPath: path] as? any Hashable else { continue }
        if AnyHashable(found) != AnyHashable(value) { return name }
      }
    }
    return nil
  }

  private func item(_ json: JSONValue) -> Item? {
    do throws(RepositoryError) {
      return try coder.item(Item.self, of: StoredValue(schemaVersion: coder.schemaVersion, json: json.json), key: key)
    } catch {
      return nil
    }
  }

  /// Returns another number, or an array with fewer elements; `nil` for what is neither.
  private func changed(_ value: JSONValue) -> JSONValue? {
    if let number = value.intValue { return JSONValue(number == 0 ? 1 : number - number.signum()) }
    if let number = value.doubleValue { return JSONValue(number == 0 ? 1 : number / 2) }
    if let elements = value.arrayValue, !elements.isEmpty { return .array(Array(elements.dropLast())) }
    return nil
  }
}
