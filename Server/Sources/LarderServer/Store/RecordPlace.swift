/// The place of a record within its scope, compared byte by byte as databases do; Swift holds texts for equal that are spelled otherwise.
struct RecordPlace: Hashable {
  var collection: String
  var id: String

  static func == (one: RecordPlace, other: RecordPlace) -> Bool {
    one.id.utf8.elementsEqual(other.id.utf8) && one.collection.utf8.elementsEqual(other.collection.utf8)
  }

  func hash(into hasher: inout Hasher) {
    for byte in id.utf8 { hasher.combine(byte) }
  }
}
