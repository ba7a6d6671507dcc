/// A step of a coding path, and the steps before it; an array of keys is made of it only for an error, or when it is asked for.
final class CodingPath {
  private let parent: CodingPath?
  private let key: any CodingKey

  init(_ key: any CodingKey, after parent: CodingPath?) {
    self.key = key
    self.parent = parent
  }

  /// Returns the keys of a path.
  static func keys(_ path: CodingPath?) -> [any CodingKey] {
    var keys: [any CodingKey] = []
    var step = path
    while let present = step {
      keys.append(present.key)
      step = present.parent
    }
    return keys.reversed()
  }
}

/// A key that no type has declared: a position in an array, or the place of a superclass.
struct PlainCodingKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  static let `super` = PlainCodingKey(stringValue: "super")

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) { self.init(position: intValue) }

  init(position: Int) {
    stringValue = "Index \(position)"
    intValue = position
  }
}
