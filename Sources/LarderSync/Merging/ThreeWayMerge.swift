internal import Foundation
internal import Larder

/// One side of a merge: a value, or that there is none, and who made it when.
struct MergeSide: Sendable {
  var value: JSONValue?
  var stamp: SyncMilliseconds = 0
  var writer = ""

  /// Returns a part of the side.
  func with(_ value: JSONValue?) -> MergeSide { MergeSide(value: value, stamp: stamp, writer: writer) }

  /// Whether the side is newer than another one; by the names of the devices where the times are the same, so that all decide alike.
  func isNewer(than other: MergeSide) -> Bool { (stamp, writer) > (other.stamp, other.writer) }
}

/// The result of a merge.
struct Merged: Sendable {
  /// The value; `nil` where the record is deleted.
  var value: JSONValue?
  /// The values that were not taken, by the names of the members.
  ///
  /// Of a record that is no object, or was deleted, it is the whole value under an empty name.
  var lost: [String: JSONValue] = [:]
  /// Whether what was not taken is of this device.
  var lostLocal = false
  /// Whether an edit of another device won over a deletion of this one.
  var undidDeletion = false
}

/// A merge of two values that have come from one, member by member.
struct ThreeWayMerge: Sendable {
  enum Preference: Sendable { case newer, remote, local }

  var preference = Preference.newer
  var deleteWins = false
  var counters: Set<String> = []
  var sets: Set<String> = []
  /// The merges of members that are objects with counters or sets in them.
  var members: [String: ThreeWayMerge] = [:]

  /// A rule for a member.
  enum Rule { case counter, set }

  /// Adds a rule for a member, which may be one of an object within.
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

  func merge(base: JSONValue?, local: MergeSide, remote: MergeSide) -> Merged {
    guard let localValue = local.value, let remoteValue = remote.value else { return mergeDeletion(base, local, remote) }
    guard let localObject = localValue.objectValue, let remoteObject = remoteValue.objectValue else {
      return mergeWhole(base, local, remote)
    }
    let baseObject = base?.objectValue ?? JSONObject()
    var object = remoteObject
    var merged = Merged()
    for name in Set(localObject.names).union(remoteObject.names).union(baseObject.names).sorted() {
      let (before, mine, theirs) = (baseObject[name], localObject[name], remoteObject[name])
      if counters.contains(name), let sum = sum(before, mine, theirs) {
        // Also where both sides are equal: two devices that count from 0 to 1 have counted to 2.
        object[name] = sum
      } else if let member = members[name], mine?.objectValue != nil, theirs?.objectValue != nil {
        let inner = member.merge(base: before, local: local.with(mine), remote: remote.with(theirs))
        object[name] = inner.value
        guard !inner.lost.isEmpty else { continue }
        merged.lost[name] = inner.lostLocal ? mine : theirs
        merged.lostLocal = inner.lostLocal
      } else if mine == theirs || mine == before {
        continue
      } else if theirs == before {
        object[name] = mine
      } else if sets.contains(name), let union = union(before, mine, theirs) {
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

  private func takesLocal(_ local: MergeSide, _ remote: MergeSide) -> Bool {
    switch preference {
    case .newer: local.isNewer(than: remote)
    case .remote: false
    case .local: true
    }
  }

  private func mergeDeletion(_ base: JSONValue?, _ local: MergeSide, _ remote: MergeSide) -> Merged {
    guard let kept = local.value ?? remote.value else { return Merged() }
    // Deleted on one side, and as it was on the other.
    if kept == base { return Merged() }
    guard deleteWins else { return Merged(value: kept, undidDeletion: local.value == nil) }
    return Merged(lost: ["": kept], lostLocal: local.value != nil)
  }

  private func mergeWhole(_ base: JSONValue?, _ local: MergeSide, _ remote: MergeSide) -> Merged {
    if local.value == remote.value || local.value == base { return Merged(value: remote.value) }
    if remote.value == base { return Merged(value: local.value) }
    let takesLocal = takesLocal(local, remote)
    return Merged(
      value: takesLocal ? local.value : remote.value, lost: ["": (takesLocal ? remote.value : local.value) ?? .null],
      lostLocal: !takesLocal)
  }

  /// Returns the remote number with what was added here; `nil` where one of the three is no number, or where the sum is none.
  private func sum(_ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?) -> JSONValue? {
    let zero = JSONNumber(0)
    guard let base = base.map(\.numberValue) ?? zero, let local = local.map(\.numberValue) ?? base,
      let remote = remote.map(\.numberValue) ?? base
    else { return nil }
    // As it is written: other bytes would be an edit.
    if local == base { return .number(remote) }
    if remote == base { return .number(local) }
    // Wide enough for the sums of all integers of 64 bits. A sum that the type cannot hold is found when the record is read.
    if let base = base.exactly(Int128.self), let local = local.exactly(Int128.self), let remote = remote.exactly(Int128.self) {
      let (difference, isTooLarge) = local.subtractingReportingOverflow(base)
      let (sum, overflows) = remote.addingReportingOverflow(difference)
      return isTooLarge || overflows ? nil : JSONValue(sum)
    }
    // As the numbers are written, for a `Decimal`; a `Double` reads the nearest of its values from that.
    if let exact = Self.decimalSum(remote, local, minus: base) { return exact }
    return JSONNumber(remote.doubleValue + (local.doubleValue - base.doubleValue)).map(JSONValue.number)
  }

  /// Returns a sum in decimal; `nil` where a number is none that a `Decimal` holds.
  private static func decimalSum(_ first: JSONNumber, _ second: JSONNumber, minus base: JSONNumber) -> JSONValue? {
    guard let first = decimal(first), var second = decimal(second), var base = decimal(base) else { return nil }
    var (difference, sum, start) = (Decimal(), Decimal(), first)
    // Where digits are lost, a `Decimal` keeps 38 of them, and a `Double` 17.
    let isDone = { (error: NSDecimalNumber.CalculationError) in error == .noError || error == .lossOfPrecision }
    guard isDone(NSDecimalSubtract(&difference, &second, &base, .plain)), isDone(NSDecimalAdd(&sum, &start, &difference, .plain)) else {
      return nil
    }
    return JSONNumber(text: sum.description).map(JSONValue.number)
  }

  /// Returns a number as a `Decimal`, which has at most 38 digits; `nil` where that is not the same number.
  private static func decimal(_ number: JSONNumber) -> Decimal? {
    let digits = number.text.prefix { $0 != "e" && $0 != "E" }.filter(\.isNumber).drop { $0 == "0" }
    let exponent = number.text.split(whereSeparator: { $0 == "e" || $0 == "E" }).dropFirst().first.map { Int($0) ?? .max } ?? 0
    guard digits.count <= 38, (-60...60).contains(exponent) else { return nil }
    return Decimal(string: number.text, locale: Locale(identifier: "en_US_POSIX"))
  }

  /// Returns the remote elements with those that were added here and without those that were removed; `nil` where one is no array.
  private func union(_ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?) -> JSONValue? {
    guard let base = (base ?? []).arrayValue, let local = (local ?? []).arrayValue, let remote = (remote ?? []).arrayValue else {
      return nil
    }
    let removed = Set(base).subtracting(local)
    let kept = remote.filter { !removed.contains($0) }
    let known = Set(base).union(remote)
    return .array(kept + local.filter { !known.contains($0) })
  }
}
