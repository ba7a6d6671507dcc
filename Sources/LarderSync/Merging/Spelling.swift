internal import Foundation
internal import Larder

/// A comparison of stored values by their type, for members that are equal although their JSON arrays differ in order.
///
/// Some encoders write a `Set<String>`, or a dictionary with keys other than strings, in another order at each launch. A merge compares
/// JSON. Without ``Spelling``, the merge would count a reordered member as changed and lose the change of the other side.
struct Spelling {
  let key: RecordKey
  let coder: any TrackedCoder

  /// Returns the value, in which a member of `other` replaces each member that differs from it only in the order of elements.
  ///
  /// Two members count as equal if the record's type encodes both to the same bytes *and* both have the same elements. The comparison of
  /// the elements covers JSON members unknown to the type, such as a member that a newer app has added to an element.
  ///
  /// The function parses both values as JSON. The record is decoded and encoded twice only if the order of a member's elements differs.
  func respelled(_ value: StoredValue, like other: StoredValue) -> StoredValue {
    // Only JSON arrays have an order that may differ, so a value without an array is returned unchanged.
    guard value.json != other.json, value.json.contains(UInt8(ascii: "[")) else { return value }
    do throws(RepositoryError) {
      let (spelled, model) = (try JSONValue(json: value.json), try JSONValue(json: other.json))
      // The JSON values are compared before the two decodes, which most merges do not need.
      guard Self.hasReordered(spelled, model) else { return value }
      let (form, modelForm) = (
        try JSONValue(json: coder.canonicalForm(of: value, key: key)), try JSONValue(json: coder.canonicalForm(of: other, key: key))
      )
      let result = Self.respelled(spelled, like: model, form, modelForm)
      return result == spelled ? value : StoredValue(schemaVersion: value.schemaVersion, json: result.json)
    } catch {
      return value  // a value that does not decode is left as it is
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
    // An array whose order matters, such as a list of steps, is encoded by its type in the new order, so the change remains an edit.
    guard let form, form == modelForm, sorted(value) == sorted(model) else { return value }
    return model
  }

  /// True if both values have a member with the same elements in another order.
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

  /// Returns the value with every array in it sorted.
  private static func sorted(_ value: JSONValue) -> JSONValue {
    if let elements = value.arrayValue {
      return .array(elements.map { sorted($0) }.map { ($0, $0.json) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map(\.0))
    }
    guard var object = value.objectValue else { return value }
    for name in object.names { object[name] = object[name].map { sorted($0) } }
    return .object(object)
  }
}
