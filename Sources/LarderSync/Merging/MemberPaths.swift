internal import Foundation
@_spi(Inspection) internal import Larder

/// The places that properties have in JSON, found by changing one number or array at a time and looking which property follows.
struct MemberPaths<Item: Sendable> {
  let key: RecordKey
  let coder: any TrackedCoder
  let samples: [JSONValue]

  /// Returns the names that lead to a property's number or array, from the outside in; `nil` where the samples do not differ in it.
  ///
  /// - Throws: `.unsupported` for one that differs, or is a number, and is not stored as one number or array: what was added to it would
  ///   be lost without a word.
  func path(of property: PartialKeyPath<Item>) throws(RepositoryError) -> [String]? {
    var values: Set<AnyHashable> = []
    for sample in samples {
      guard let object = sample.objectValue, let item = item(sample) else { continue }
      guard let value = item[keyPath: property] as? any Hashable else { throw unsupported }
      values.insert(AnyHashable(value))
      let found = paths(in: object) { variant in
        guard let changed = self.item(.object(variant))?[keyPath: property] as? any Hashable else { return false }
        return AnyHashable(changed) != AnyHashable(value)
      }
      // Of several, one may be that of a value computed from others; within an object, the property is the object.
      if let path = found.first(where: { $0.count == 1 }) ?? (found.count == 1 ? found[0] : nil) { return path }
    }
    if values.count > 1 || values.contains(where: { Self.isNumber($0.base) }) { throw unsupported }
    return nil
  }

  private var unsupported: RepositoryError {
    RepositoryError(
      .unsupported, "expected a counter that is stored as one number, or a set that is stored as one array; declare another property",
      keyHash: key.hash)
  }

  private static func isNumber(_ value: Any) -> Bool { value is any BinaryInteger || value is any BinaryFloatingPoint }

  /// Returns the places of the numbers and arrays of an object whose change is followed.
  private func paths(in object: JSONObject, _ isFollowed: (JSONObject) -> Bool) -> [[String]] {
    var found: [[String]] = []
    for name in object.names {
      var variant = object
      if let inner = object[name]?.objectValue {
        let within = paths(in: inner) { changed in
          variant[name] = .object(changed)
          return isFollowed(variant)
        }
        found += within.map { [name] + $0 }
      } else if let other = object[name].flatMap(changed) {
        variant[name] = other
        if isFollowed(variant) { found.append([name]) }
      }
    }
    return found
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
