internal import Foundation
@_spi(Inspection) internal import Larder

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
