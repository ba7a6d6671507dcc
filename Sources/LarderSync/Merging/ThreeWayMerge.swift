// Merging/ merges the base value, the local value and the server's value of a record. A merge goes member by member, adds the differences
// of counters and sets, or calls the app's closure.
// Invariant: a change of a member that only one side has made is never lost.
// Called by Exchange.

internal import Foundation
internal import Larder
internal import LarderWire

/// One side of a merge: a value or a deletion, with the time and the device of its edit.
struct MergeSide: Sendable {
  var value: JSONValue?
  var stamp: SyncMilliseconds = 0
  var writer = ""

  /// Returns a copy of this side with another value, such as an inner object of its value.
  func with(_ value: JSONValue?) -> MergeSide { MergeSide(value: value, stamp: stamp, writer: writer) }

  /// True if the edit of this side is newer than the edit of the other side.
  ///
  /// With equal times, the side whose writer has the greater name is newer. The local side of a merge has an empty name, so with equal
  /// times the server's value wins.
  func isNewer(than other: MergeSide) -> Bool { (stamp, writer) > (other.stamp, other.writer) }
}

/// Result of the merge of one record.
struct Merged: Sendable {
  /// Merged value, or `nil` if the record is deleted.
  var value: JSONValue?
  /// Values that lost against a change of the other side, by the names of their members.
  ///
  /// If the record is not an object or was deleted, the whole losing value is stored under the empty name.
  var lost: [String: JSONValue] = [:]
  /// True if the losing values are of this device.
  var lostLocal = false
  /// True if an edit of another device won over a deletion by this device.
  var undidDeletion = false
}

/// A three-way merge of JSON values, member by member.
struct ThreeWayMerge: Sendable {
  enum Preference: Sendable { case newer, remote, local }

  var preference = Preference.newer
  var deleteWins = false
  var counters: Set<String> = []
  var sets: Set<String> = []
  /// Merges of the inner objects that have counters or sets, by the names of the members that hold the objects.
  var members: [String: ThreeWayMerge] = [:]

  /// Rule for a member whose differences to the base are merged: a number or an array.
  enum Rule { case counter, set }

  /// Adds a rule for the member at a path of JSON names, such as a counter in an inner object.
  mutating func add(_ rule: Rule, at path: ArraySlice<String>) {
    guard let name = path.first else { return }
    if path.count > 1 {
      members[name, default: ThreeWayMerge(preference: preference, deleteWins: deleteWins)].add(rule, at: path.dropFirst())
    } else {
      switch rule {
      case .counter: counters.insert(name)
      case .set: sets.insert(name)
      }
    }
  }

  /// Merges two values that were both edited from `base`, or that were inserted on both sides if `base` is `nil`.
  func merge(base: JSONValue?, local: MergeSide, remote: MergeSide) -> Merged {
    guard let localValue = local.value, let remoteValue = remote.value else {
      return mergeDeletion(base: base, local: local, remote: remote)
    }
    guard let localObject = localValue.objectValue, let remoteObject = remoteValue.objectValue else {
      return mergeWhole(base: base, local: local, remote: remote)
    }
    let baseObject = base?.objectValue ?? JSONObject()
    var object = remoteObject
    var merged = Merged()
    // The names are sorted, since a Swift `Set` has another order at each launch and the order of the merged members must not depend on it.
    for name in Set(localObject.names).union(remoteObject.names).union(baseObject.names).sorted() {
      let (before, mine, theirs) = (baseObject[name], localObject[name], remoteObject[name])
      if counters.contains(name), let sum = sum(base: before, local: mine, remote: theirs) {
        // Counters are added before the test for equal sides, since two devices that both count from 0 to 1 have counted to 2.
        object[name] = sum
      } else if let member = members[name], mine?.objectValue != nil, theirs?.objectValue != nil {
        let inner = member.merge(base: before, local: local.with(mine), remote: remote.with(theirs))
        object[name] = inner.value
        // The whole inner object is kept as the lost value, so that each name in `lost` is one of the record's members.
        guard !inner.lost.isEmpty else { continue }
        merged.lost[name] = inner.lostLocal ? mine : theirs
        merged.lostLocal = inner.lostLocal
      } else if mine == theirs || mine == before {
        continue
      } else if theirs == before {
        object[name] = mine
      } else if sets.contains(name), let union = union(base: before, local: mine, remote: theirs) {
        object[name] = union
      } else {
        let takesLocal = takesLocal(local, remote)
        if takesLocal { object[name] = mine }
        merged.lost[name] = (takesLocal ? theirs : mine) ?? .null
        merged.lostLocal = !takesLocal
      }
    }
    merged.value = .object(object)
    return merged
  }

  /// Returns true if the policy takes this device's value of a member that both sides have changed.
  private func takesLocal(_ local: MergeSide, _ remote: MergeSide) -> Bool {
    switch preference {
    case .newer: local.isNewer(than: remote)
    case .remote: false
    case .local: true
    }
  }

  private func mergeDeletion(base: JSONValue?, local: MergeSide, remote: MergeSide) -> Merged {
    guard let kept = local.value ?? remote.value else { return Merged() }
    // One side has deleted the record and the other has not edited it, so the deletion wins with any policy.
    if kept == base { return Merged() }
    guard deleteWins else { return Merged(value: kept, undidDeletion: local.value == nil) }
    return Merged(lost: ["": kept], lostLocal: local.value != nil)
  }

  private func mergeWhole(base: JSONValue?, local: MergeSide, remote: MergeSide) -> Merged {
    if local.value == remote.value || local.value == base { return Merged(value: remote.value) }
    if remote.value == base { return Merged(value: local.value) }
    let takesLocal = takesLocal(local, remote)
    return Merged(
      value: takesLocal ? local.value : remote.value, lost: ["": (takesLocal ? remote.value : local.value) ?? .null],
      lostLocal: !takesLocal)
  }

  /// Returns the remote number plus the local difference to the base.
  ///
  /// Returns `nil` if the base, the local or the remote value is no number, or if the sum is out of range.
  private func sum(base: JSONValue?, local: JSONValue?, remote: JSONValue?) -> JSONValue? {
    let zero = JSONNumber(0)
    guard let base = base.map(\.numberValue) ?? zero, let local = local.map(\.numberValue) ?? base,
      let remote = remote.map(\.numberValue) ?? base
    else { return nil }
    // If one side has not changed the number, the number of the other side is returned with the same spelling. A respelled number, such as
    // 1.0 for 1, would count as an edit.
    if local == base { return .number(remote) }
    if remote == base { return .number(local) }
    // 128 bits hold the sums of all 64-bit integers. If the property's type cannot hold the sum, the merged record does not decode, and the
    // merge fails.
    if let base = base.exactly(Int128.self), let local = local.exactly(Int128.self), let remote = remote.exactly(Int128.self) {
      let (difference, isTooLarge) = local.subtractingReportingOverflow(base)
      let (sum, overflows) = remote.addingReportingOverflow(difference)
      return isTooLarge || overflows ? nil : JSONValue(sum)
    }
    // The sum is decimal if possible, since a binary sum would round a `Decimal` property to a `Double`. A `Double` property reads the
    // nearest value of the decimal sum.
    if let exact = Self.decimalSum(remote, local, minus: base) { return exact }
    return JSONNumber(remote.doubleValue + (local.doubleValue - base.doubleValue)).map(JSONValue.number)
  }

  /// Returns `first + second - base` in decimal, or `nil` if a number does not fit a `Decimal`.
  private static func decimalSum(_ first: JSONNumber, _ second: JSONNumber, minus base: JSONNumber) -> JSONValue? {
    guard let first = decimal(first), var second = decimal(second), var base = decimal(base) else { return nil }
    var (difference, sum, start) = (Decimal(), Decimal(), first)
    // Loss of precision is accepted: a `Decimal` keeps 38 digits, and a `Double` only 17.
    let isDone = { (error: NSDecimalNumber.CalculationError) in error == .noError || error == .lossOfPrecision }
    guard isDone(NSDecimalSubtract(&difference, &second, &base, .plain)), isDone(NSDecimalAdd(&sum, &start, &difference, .plain)) else {
      return nil
    }
    return JSONNumber(text: sum.description).map(JSONValue.number)
  }

  /// Returns a number as a `Decimal`, or `nil` if it has more than 38 digits or a large exponent.
  private static func decimal(_ number: JSONNumber) -> Decimal? {
    let digits = number.text.prefix { $0 != "e" && $0 != "E" }.filter(\.isNumber).drop { $0 == "0" }
    let exponent = number.text.split(whereSeparator: { $0 == "e" || $0 == "E" }).dropFirst().first.map { Int($0) ?? .max } ?? 0
    guard digits.count <= 38, (-60...60).contains(exponent) else { return nil }
    // The locale is fixed, since `Decimal` would otherwise expect the decimal separator of the device's locale.
    return Decimal(string: number.text, locale: Locale(identifier: "en_US_POSIX"))
  }

  /// Returns the remote elements of a set, plus the local additions and minus the local removals.
  ///
  /// Returns `nil` if the base, the local or the remote value is no array.
  private func union(base: JSONValue?, local: JSONValue?, remote: JSONValue?) -> JSONValue? {
    guard let base = (base ?? []).arrayValue, let local = (local ?? []).arrayValue, let remote = (remote ?? []).arrayValue else {
      return nil
    }
    let removed = Set(base).subtracting(local)
    let kept = remote.filter { !removed.contains($0) }
    let known = Set(base).union(remote)
    return .array(kept + local.filter { !known.contains($0) })
  }
}
