internal import Foundation
@_spi(Inspection) internal import Larder
internal import Synchronization

/// The rules by which a record that was changed on two devices becomes one again.
///
/// A member that was changed on one side only is taken from that side. Where both sides have changed it, the policy decides, and the value
/// that was not taken is kept as a ``SyncConflict``.
public struct MergePolicy<Item: Sendable>: Sendable {
  /// The rule for a record that one side has deleted and the other has edited.
  public enum Deletion: Sendable, Hashable {
    /// The record stays, with the edit.
    case editWins
    /// The record is gone; the edit is kept as a conflict.
    case deleteWins
  }

  enum Kind: Sendable {
    case newer
    case remote
    case local
    case custom(@Sendable (_ base: Item?, _ local: Item, _ remote: Item) throws -> Item)
  }

  let kind: Kind
  let deletion: Deletion
  let counters: [any PartialKeyPath<Item> & Sendable]
  let sets: [any PartialKeyPath<Item> & Sendable]

  /// Merges member by member: the newer edit holds, by the server's clock.
  ///
  /// A counter or set may be within an object that the record has. One that is not found as one number or array when it is to be merged
  /// leaves the edit here, among the rejected ones.
  /// - Parameters:
  ///   - counters: Numbers of which the differences add up, so that no increment is lost or counted twice.
  ///   - sets: Arrays and sets of `Hashable` elements, of which additions and removals are merged element by element.
  ///   - deletion: Whether an edit or a deletion wins where there are both: the edit unless given.
  public static func fields(
    counters: [any PartialKeyPath<Item> & Sendable] = [], sets: [any PartialKeyPath<Item> & Sendable] = [], deletion: Deletion = .editWins
  ) -> MergePolicy {
    MergePolicy(kind: .newer, deletion: deletion, counters: counters, sets: sets)
  }

  /// Merges member by member, and takes what the server has where both sides have changed one.
  public static var remoteWins: MergePolicy { MergePolicy(kind: .remote, deletion: .editWins, counters: [], sets: []) }

  /// Merges member by member, and takes what this device has where both sides have changed one.
  public static var localWins: MergePolicy { MergePolicy(kind: .local, deletion: .editWins, counters: [], sets: []) }

  /// Merges with a closure; what it throws leaves the edit here, among the rejected ones.
  ///
  /// The closure must not change the id. `base` is the value that both sides began with. It is `nil` where both have inserted the
  /// record, and where this side has deleted it and inserted another one.
  public static func custom(
    deletion: Deletion = .editWins, _ merge: @escaping @Sendable (_ base: Item?, _ local: Item, _ remote: Item) throws -> Item
  ) -> MergePolicy {
    MergePolicy(kind: .custom(merge), deletion: deletion, counters: [], sets: [])
  }
}

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

/// The places that properties have in JSON, found by changing one number or array at a time and looking which property follows.
struct MemberPaths<Item: Sendable> {
  let key: RecordKey
  let coder: any TrackedCoder
  let sides: [JSONValue]
  let base: JSONValue?

  /// Returns the names that lead to a property's number or array, from the outside in; `nil` where there is nothing to merge in it.
  ///
  /// Cost: decoding the record for each of its numbers and arrays, in the worst case, and only where the property was changed.
  /// - Throws: `.unsupported` for one that was changed and is not stored as one number or array: what was added to it would be lost without
  ///   a word.
  func path(of property: PartialKeyPath<Item>) throws(RepositoryError) -> [String]? {
    var samples: [(object: JSONObject, value: AnyHashable)] = []
    for sample in sides + (base.map { [$0] } ?? []) {
      guard let object = sample.objectValue, let item = item(sample) else { continue }
      // What cannot be compared is merged as a whole.
      guard let value = item[keyPath: property] as? any Hashable else { return nil }
      samples.append((object, AnyHashable(value)))
    }
    let isSame = Set(samples.map(\.value)).count <= 1
    if isSame, samples.count > sides.count { return nil }
    func isFollowed(_ variant: JSONObject, from value: AnyHashable) -> Bool {
      guard let changed = item(.object(variant))?[keyPath: property] as? any Hashable else { return false }
      return AnyHashable(changed) != value
    }
    for (object, value) in samples {
      if let name = object.names.first(where: { changed(object, at: $0).map { isFollowed($0, from: value) } == true }) { return [name] }
    }
    for (object, value) in samples {
      // Where several are followed, the property is the object that they are in.
      let found = paths(in: object) { isFollowed($0, from: value) }
      if found.count == 1 { return found[0] }
    }
    if !isSame { throw unsupported }
    return nil
  }

  private var unsupported: RepositoryError {
    RepositoryError(
      .unsupported, "expected a counter that is stored as one number, or a set that is stored as one array; declare another property",
      keyHash: key.hash)
  }

  /// Returns the places of the numbers and arrays of an object, and of those in it, whose change is followed.
  private func paths(in object: JSONObject, _ isFollowed: (JSONObject) -> Bool) -> [[String]] {
    object.names.flatMap { name -> [[String]] in
      guard let inner = object[name]?.objectValue else { return changed(object, at: name).map(isFollowed) == true ? [[name]] : [] }
      let within = paths(in: inner) { changed in
        var variant = object
        variant[name] = .object(changed)
        return isFollowed(variant)
      }
      return within.map { [name] + $0 }
    }
  }

  private func item(_ json: JSONValue) -> Item? {
    do throws(RepositoryError) {
      return try coder.item(Item.self, of: StoredValue(schemaVersion: coder.schemaVersion, json: json.json), key: key)
    } catch {
      return nil
    }
  }

  /// Returns an object with another number, or fewer elements, at a name; `nil` for what is neither.
  private func changed(_ object: JSONObject, at name: String) -> JSONObject? {
    guard let value = object[name] else { return nil }
    var variant = object
    if let number = value.intValue {
      variant[name] = JSONValue(number == 0 ? 1 : number - number.signum())
    } else if let number = value.doubleValue {
      variant[name] = JSONValue(number == 0 ? 1 : number / 2)
    } else if let elements = value.arrayValue, !elements.isEmpty {
      variant[name] = .array(Array(elements.dropLast()))
    } else {
      return nil
    }
    return variant
  }
}
