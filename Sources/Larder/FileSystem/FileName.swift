/// The names that every file system takes.
enum FileName {
  /// The most bytes of a name: NAME_MAX of every file system that matters.
  static let limit = 255

  /// Returns a name; its beginning and its checksum where it would leave less than `count` bytes for what is put behind it.
  static func shortened(_ name: String, leaving count: Int) -> String {
    guard name.utf8.count + count > limit else { return name }
    let checksum = "-" + Hexadecimal.string(Array(name.utf8).withUnsafeBytes { CRC32C.checksum($0) })
    var stem = name[...]
    while stem.utf8.count + checksum.utf8.count + count > limit, !stem.isEmpty { stem.removeLast() }
    return stem + checksum
  }
}
