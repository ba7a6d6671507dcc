internal import Foundation

/// The paths of a JSON store's files, all derived from the name of its main file.
struct JSONFilePaths: Sendable {
  let directory: String
  /// Path of the main file, the JSON document, which is a complete document at all times.
  let mainFile: String
  /// File name of the main file, without its directory.
  let name: String
  /// The main file's name as the prefix of quarantine files and unfinished backup copies, shortened so that their names are not too long.
  private let quarantineStem, copyStem: String

  /// Length in bytes of the longest suffix that is added to the whole name of the main file.
  private static let longestSuffix = "-previous-tmp".utf8.count
  /// Length in bytes of the suffix of an unfinished backup copy: "-copy-", a number of 16 digits and "-tmp".
  private static let copySuffix = "-copy-".utf8.count + 16 + "-tmp".utf8.count
  /// Length in bytes of the longest suffix of a quarantine file: "-quarantine-", two numbers of up to 20 digits, and "-tmp".
  private static let longestQuarantineSuffix = "-quarantine--".utf8.count + 40 + "-tmp".utf8.count

  init(_ file: URL) {
    let url = file.standardizedFileURL
    mainFile = url.path
    directory = url.deletingLastPathComponent().path
    // `lastPathComponent` leaves out a byte order mark, which is a part of the file's name.
    name = PathText.name(of: url.path)
    quarantineStem = FileName.shortened(name, leaving: Self.longestQuarantineSuffix)
    copyStem = FileName.shortened(name, leaving: Self.copySuffix)
  }

  var journal: String { mainFile + "-journal" }
  var lock: String { mainFile + "-lock" }
  /// Path of the previous main file, which a checkpoint keeps with the option ``StoreOptions/keepsPreviousSnapshot``.
  var previous: String { mainFile + "-previous" }

  /// Path of the index file of a store that leaves its records in its files.
  var index: String { mainFile + "-index" }

  /// Path that the scratch file of an index build has for a moment.
  var scratch: String { mainFile + "-keys-tmp" }

  /// Throws `.unsupported` if the main file's name is so long that the names with a suffix would exceed the limit of the file system.
  ///
  /// Without `checkLength()`, a store with too long a name would open, and then every save would fail.
  func checkLength() throws(RepositoryError) {
    guard name.utf8.count + Self.longestSuffix > FileName.limit else { return }
    throw RepositoryError(
      .unsupported,
      "the file's name has \(name.utf8.count) bytes; at most \(FileName.limit - Self.longestSuffix) leave room for "
        + "the names beside it", file: mainFile)
  }

  /// Returns the path of a file in the store's directory.
  func path(of name: String) -> String { (directory == "/" ? "" : directory) + "/" + name }

  /// Returns the path of a quarantine file, which keeps bytes that recovery cuts from a journal.
  ///
  /// Larder never removes a quarantine file.
  func quarantine(generation: UInt64, offset: Int) -> String { path(of: "\(quarantineStem)-quarantine-\(generation)-\(offset)") }

  /// A new random path for a backup copy that is being written.
  ///
  /// The path is random, because a file with a fixed name might already exist.
  var newCopy: String { path(of: "\(copyStem)-copy-\(Hexadecimal.string(UInt64.random(in: .min ... .max)))-tmp") }

  /// True if a file name has the form that ``newCopy`` gives to an unfinished backup copy.
  func isCopy(_ other: String) -> Bool {
    guard other.utf8.starts(with: (copyStem + "-copy-").utf8), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(copyStem.utf8.count + 6).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Returns the path that a quarantine file has until an opening has reported that its bytes were cut from the journal.
  static func unreported(_ cut: OpenReport.CutTail) -> String { cut.quarantineFile + (cut.isAmbiguous ? "-due" : "-torn") }

  /// Returns the cut that a file name from ``unreported(_:)`` describes, or `nil` for any other file name.
  func unreportedCut(_ other: String, byteCount: Int) -> OpenReport.CutTail? {
    for (ending, isAmbiguous) in [("-due", true), ("-torn", false)] where isQuarantine(other) && other.hasSuffix(ending) {
      let numbers = numbers(of: other, before: ending)
      guard numbers.count == 2, let generation = UInt64(numbers[0]), let offset = Int(numbers[1]) else { continue }
      return .init(
        file: journal, offset: UInt64(offset), byteCount: byteCount,
        quarantineFile: quarantine(generation: generation, offset: offset), isAmbiguous: isAmbiguous)
    }
    return nil
  }

  /// Returns the numbers behind "-quarantine-" in a quarantine file's name: the generation and the offset.
  private func numbers(of other: String, before ending: String) -> [Substring] {
    Substring(other.utf8.dropFirst(quarantineStem.utf8.count + "-quarantine-".utf8.count).dropLast(ending.utf8.count)).split(separator: "-")
  }

  /// True if a file name belongs to a quarantine file that is completely written.
  func isQuarantine(_ name: String) -> Bool {
    // A quarantine file that was renamed to `…-damaged` or `…-damaged-2` does not count, because such a file must not keep a new store
    // from opening.
    name.utf8.starts(with: (quarantineStem + "-quarantine-").utf8) && !name.hasSuffix("-tmp")
      && !name.dropFirst(quarantineStem.count).contains("-damaged")
  }

  /// Returns the temporary paths under which the main file, the journal and the previous main file are written before their rename.
  func drafts(keepsPrevious: Bool) -> [String] {
    ([mainFile, journal] + (keepsPrevious ? [previous] : [])).map { $0 + FileReplacement.suffix }
  }

  /// Returns the sorted names of the temporary files that an interrupted process has left.
  func temporaryFiles(in fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var names: [String] = []
    for name in try (fileSystem.entries(of: directory) ?? []).sorted() where isTemporary(name) {
      // A directory cannot be a temporary file of Larder, and `unlink` on a directory would fail at each opening.
      if try fileSystem.status(of: path(of: name))?.kind != .directory { names.append(name) }
    }
    return names
  }

  /// True if an interrupted process may have left a temporary file with this name for this store, and false for any similar name.
  ///
  /// File names are compared by their bytes: Swift strings that differ only in Unicode normalization are equal, but may name two files.
  private func isTemporary(_ other: String) -> Bool {
    ["-tmp", "-journal-tmp", "-previous-tmp", "-index-tmp", "-keys-tmp"].contains { other.utf8.elementsEqual((name + $0).utf8) }
      || isCopy(other)
      || isTemporaryQuarantine(other)
  }

  private func isTemporaryQuarantine(_ other: String) -> Bool {
    guard other.utf8.starts(with: (quarantineStem + "-quarantine-").utf8), other.hasSuffix("-tmp") else { return false }
    let numbers = numbers(of: other, before: "-tmp")
    return numbers.count >= 2 && numbers.prefix(2).allSatisfy { UInt64($0) != nil }
  }
}
