internal import Foundation
internal import Larder
internal import Synchronization

/// The rules that merge a record that two devices have changed.
///
/// Pass a policy to `RepositorySchema.synced(in:merge:clock:)`. ``fields(counters:sets:deletion:)`` suits most records. Use
/// ``custom(deletion:_:)`` when members depend on each other.
///
/// A member that was changed on one side only is taken from that side. If both sides have changed a member, the policy decides. A losing
/// value is kept as a ``SyncConflict``, unless a closure has merged the record.
public struct MergePolicy<Item: Sendable>: Sendable {
  /// Rule for a record that one side has deleted and the other has edited.
  public enum Deletion: Sendable, Hashable {
    /// The edit wins over the deletion, and the record stays.
    case editWins
    /// The deletion wins over the edit, and the record is deleted.
    ///
    /// The losing edit is kept as a ``SyncConflict``.
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

  /// Merges member by member.
  ///
  /// If both sides have changed a member, the edit that is newer by the server's clock wins.
  ///
  /// A counter or set may be in an object within the record. A counter must be stored as one number, and a set as one array. An edit of a
  /// counter or set that is stored in another form is not merged and waits in ``SyncEngine/rejected``.
  /// - Parameters:
  ///   - counters: Numbers whose differences are added, so that no increment is lost or counted twice.
  ///   - sets: Arrays and sets of `Hashable` elements, whose additions and removals are merged element by element.
  ///   - deletion: Whether the edit or the deletion wins if one side has edited the record and the other has deleted it. By default the
  ///     edit wins.
  public static func fields(
    counters: [any PartialKeyPath<Item> & Sendable] = [], sets: [any PartialKeyPath<Item> & Sendable] = [], deletion: Deletion = .editWins
  ) -> MergePolicy {
    MergePolicy(kind: .newer, deletion: deletion, counters: counters, sets: sets)
  }

  /// Merges member by member, and takes the server's value if both sides have changed a member.
  public static var remoteWins: MergePolicy { MergePolicy(kind: .remote, deletion: .editWins, counters: [], sets: []) }

  /// Merges member by member, and takes this device's value if both sides have changed a member.
  public static var localWins: MergePolicy { MergePolicy(kind: .local, deletion: .editWins, counters: [], sets: []) }

  /// Calls a closure of the app to merge a record that both sides have changed.
  ///
  /// If the closure throws, the edit waits in ``SyncEngine/rejected``. The closure must not change the record's id. `base` is the value
  /// from which both sides were edited. `base` is `nil` if both sides have inserted the record, or if this side has deleted the record and
  /// inserted another one with its id.
  public static func custom(
    deletion: Deletion = .editWins, _ merge: @escaping @Sendable (_ base: Item?, _ local: Item, _ remote: Item) throws -> Item
  ) -> MergePolicy {
    MergePolicy(kind: .custom(merge), deletion: deletion, counters: [], sets: [])
  }
}

/// A merger of stored values of any type.
protocol RecordMerger: Sendable {
  /// Merges a record's local value and server's value, which have the app's schema version unless one side is a deletion.
  ///
  /// - Throws: The error of a custom policy's closure, and errors of reading the values.
  func merge(
    key: RecordKey, base: StoredValue?, local: MergeSide, remote: MergeSide, coder: (any TrackedCoder)?
  ) throws -> Merged
}

/// A merger without a policy, for collections whose repository is not open.
///
/// `ScopeCommits` merges two values only with a policy, so this merger gets only merges in which one side is a deletion.
struct PlainMerger: RecordMerger {
  func merge(
    key: RecordKey, base: StoredValue?, local: MergeSide, remote: MergeSide, coder: (any TrackedCoder)?
  ) throws -> Merged {
    ThreeWayMerge().merge(
      base: try base.map { (base) throws(RepositoryError) in try JSONValue(json: base.json) }, local: local, remote: remote)
  }
}

/// A merger that follows the policy of a collection.
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
      // The closure is not called for a deletion or for two equal values, because the merge by members gives their result.
      guard let localValue = local.value, let remoteValue = remote.value, let coder, localValue != remoteValue else { break }
      // If only one side has changed the record, the value of that side is the result, and the closure is not called.
      if localValue == baseValue { return Merged(value: remoteValue) }
      if remoteValue == baseValue { return Merged(value: localValue) }
      let item = { (json: JSONValue) in
        try coder.item(Item.self, of: StoredValue(schemaVersion: coder.schemaVersion, json: json.json), key: key)
      }
      let result = try body(try baseValue.map(item), try item(localValue), try item(remoteValue))
      // If the coder is of another type than `Item`, `json` returns `nil`, and the record is merged by members.
      guard let json = try coder.json(of: result) else { break }
      return Merged(value: try JSONValue(json: json))
    }
    // Finding the JSON paths of counters and sets decodes the record many times, so a policy without counters and sets skips the search.
    if let coder, let localValue = local.value, let remoteValue = remote.value, !policy.counters.isEmpty || !policy.sets.isEmpty {
      let paths = MemberPaths<Item>(key: key, coder: coder, sides: [localValue, remoteValue], base: baseValue)
      for counter in policy.counters { if let path = try paths.path(of: counter) { merge.add(.counter, at: path[...]) } }
      for set in policy.sets { if let path = try paths.path(of: set) { merge.add(.set, at: path[...]) } }
    }
    return merge.merge(base: baseValue, local: local, remote: remote)
  }
}

/// A search for the JSON members behind Swift properties, by changing one number or array of a sample at a time.
///
/// The search does not use `CodingKeys`: a property is stored in the JSON member whose change also changes the property's decoded value.
struct MemberPaths<Item: Sendable> {
  let key: RecordKey
  let coder: any TrackedCoder
  let sides: [JSONValue]
  let base: JSONValue?

  /// Returns the path of JSON member names that leads to a property's number or array, with the outermost name first.
  ///
  /// Returns `nil` if the property needs no merge of its own, since it was not changed or cannot be compared.
  ///
  /// A property that is equal in the base and on both sides needs no search. In the worst case, the search decodes each of these values
  /// once or twice for each of its numbers and arrays.
  /// - Throws: `.unsupported` for a changed property that is not stored as one number or array. A merge that left the property out would
  ///   lose increments.
  func path(of property: PartialKeyPath<Item>) throws(RepositoryError) -> [String]? {
    var samples: [(object: JSONObject, value: AnyHashable)] = []
    for sample in sides + (base.map { [$0] } ?? []) {
      guard let object = sample.objectValue, let item = item(sample) else { continue }
      // A property that is not `Hashable` cannot be compared, and is merged as a whole.
      guard let value = item[keyPath: property] as? any Hashable else { return nil }
      samples.append((object, AnyHashable(value)))
    }
    let isSame = Set(samples.map(\.value)).count <= 1
    // Fast path: if base, local and server's value of the property are equal, neither side has changed it.
    if isSame, samples.count > sides.count { return nil }
    func isFollowed(_ variant: JSONObject, from value: AnyHashable) -> Bool {
      guard let changed = item(.object(variant))?[keyPath: property] as? any Hashable else { return false }
      return AnyHashable(changed) != value
    }
    for (object, value) in samples {
      // The outer members are tested first, since most counters are outer members and each test costs a decode of the record.
      if let name = object.names.first(where: { changed(object, at: $0).map { isFollowed($0, from: value) } == true }) { return [name] }
    }
    for (object, value) in samples {
      // If the property changes with several members, the property is an object with these members, and not a counter or a set.
      let found = paths(in: object) { isFollowed($0, from: value) }
      if found.count == 1 { return found[0] }
    }
    // Without this error, a changed counter would be merged as a plain member and lose increments.
    if !isSame { throw unsupported }
    return nil
  }

  private var unsupported: RepositoryError {
    RepositoryError(
      .unsupported, "expected a counter that is stored as one number, or a set that is stored as one array; declare another property",
      keyHash: key.hash)
  }

  /// Returns the paths of all numbers and arrays whose change also changes the property, including those in inner objects.
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

  /// Returns a copy of the object in which the number at a name has another value, or the array at the name has one element less.
  ///
  /// Returns `nil` if the member is neither a number nor an array with elements.
  private func changed(_ object: JSONObject, at name: String) -> JSONObject? {
    guard let value = object[name] else { return nil }
    var variant = object
    if let number = value.intValue {
      // The number moves towards zero, so that it stays within the range of its type.
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
