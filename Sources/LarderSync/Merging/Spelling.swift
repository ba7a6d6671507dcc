internal import Foundation
@_spi(Inspection) internal import Larder

/// A comparison of stored values by their type, for members whose encodings differ and that are the same all the same.
///
/// `Set<String>`, and dictionaries whose keys are no names of JSON, were encoded in another order at each launch by apps before this one,
/// and are by other encoders. A merge compares JSON: it would take such a member for one that was changed, and lose the change of the other
/// side.
struct Spelling {
  let key: RecordKey
  let coder: any TrackedCoder

  /// Returns a value in which each member that is another one's but for its order is spelled as that one.
  ///
  /// A member counts as the same when the type encodes both to the same bytes *and* both have the same elements: what the type does not
  /// know, as a member that a newer app has added to an element, must be the same, too.
  ///
  /// Cost: reading both as JSON; two decodes and encodes, only where an order differs.
  func respelled(_ value: StoredValue, like other: StoredValue) -> StoredValue {
    guard value.json != other.json, value.json.contains(UInt8(ascii: "[")) else { return value }
    do throws(RepositoryError) {
      let (spelled, model) = (try JSONValue(json: value.json), try JSONValue(json: other.json))
      guard Self.hasReordered(spelled, model) else { return value }
      let (form, modelForm) = (
        try JSONValue(json: coder.canonicalForm(of: value, key: key)), try JSONValue(json: coder.canonicalForm(of: other, key: key))
      )
      let result = Self.respelled(spelled, like: model, form, modelForm)
      return result == spelled ? value : StoredValue(schemaVersion: value.schemaVersion, json: result.json)
    } catch {
      return value  // what does not decode has no members that are known
    }
  }

  private static func respelled(_ value: JSONValue, like model: JSONValue, _ form: JSONValue?, _ modelForm: JSONValue?) -> JSONValue {
    guard value != model else { return value }
    if var object = value.objectValue, let other = model.objectValue {
      for name in object.names {
        guard let member = object[name], let otherMember = other[name] else { continue }
        object[name] = respelled(member, like: otherMember, form?.objectValue?[name], modelForm?.objectValue?[name])
      }
      return .object(object)
    }
    guard let form, form == modelForm, sorted(value) == sorted(model) else { return value }
    return model
  }

  /// Whether a member of both has the same elements in another order.
  private static func hasReordered(_ value: JSONValue, _ model: JSONValue) -> Bool {
    guard value != model else { return false }
    if let object = value.objectValue, let other = model.objectValue {
      return object.names.contains { name in
        guard let member = object[name], let otherMember = other[name] else { return false }
        return hasReordered(member, otherMember)
      }
    }
    return value.arrayValue?.count == model.arrayValue?.count && sorted(value) == sorted(model)
  }

  /// Returns a value with every array in it sorted.
  private static func sorted(_ value: JSONValue) -> JSONValue {
    if let elements = value.arrayValue {
      return .array(elements.map { sorted($0) }.map { ($0, $0.json) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map(\.0))
    }
    guard var object = value.objectValue else { return value }
    for name in object.names { object[name] = object[name].map { sorted($0) } }
    return .object(object)
  }
}
