/// Collection and id of a record within its scope, compared byte by byte as databases do.
///
/// Swift's own comparison takes different spellings of one Unicode text for equal.
struct RecordPlace: Hashable {
  var collection: String
  var id: String

  static func == (one: RecordPlace, other: RecordPlace) -> Bool {
    one.id.utf8.elementsEqual(other.id.utf8) && one.collection.utf8.elementsEqual(other.collection.utf8)
  }

  func hash(into hasher: inout Hasher) {
    // By bytes, as `==` compares. Two equal places have equal ids, so the id alone is enough.
    for byte in id.utf8 { hasher.combine(byte) }
  }
}
