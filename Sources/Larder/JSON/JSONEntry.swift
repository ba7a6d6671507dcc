/// A value of a JSON text, or the name of a member: the name comes before its value, and what is in a container behind the container.
struct JSONEntry {
  enum Kind: UInt8 { case null, `true`, `false`, number, string, array, object }

  let kind: Kind
  /// Of a string, whether it is ASCII without escapes; of a number, whether it is an integer; of an object, whether its names are plain
  /// strings in ascending order, so that no two are alike.
  var isPlain: Bool
  /// The offset of the text: of a string, behind its quotation mark.
  let offset: UInt32
  /// The length of the text in bytes; of a container, the number of its values.
  var length: UInt32
  /// The position of the entry behind this value and all that is in it.
  var next: UInt32

  var range: Range<Int> { Int(offset)..<Int(offset) + Int(length) }

  /// The kind in words, for errors.
  var name: String {
    switch kind {
    case .null: "null"
    case .true, .false: "a truth value"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
