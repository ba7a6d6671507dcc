internal import Foundation

/// The paths of a JSON store's files, all derived from the name of its main file.
struct JSONFilePaths: Sendable {
  let directory: String
  /// Path of the JSON document, which is complete at all times.
  let mainFile: String
  /// Name of the main file in its directory.
  let name: String
  /// Prefixes of quarantine files and of unfinished copies: the main file's name, shortened if the whole names would be too long.
  private let quarantineStem, copyStem: String

  /// Length in bytes of the longest suffix that is added to the unshortened name of the main file.
  private static let longestSuffix = "-previous-tmp".utf8.count
  /// Length in bytes of the suffix of an unfinished copy: "-copy-", a number of 16 digits and "-tmp".
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
  /// Path of the copy of the main file before the last checkpoint, which is kept with ``StoreOptions/keepsPreviousSnapshot``.
  var previous: String { mainFile + "-previous" }

  /// Throws `.unsupported` if the main file's name leaves no room for the suffixes of the files beside it.
  ///
  /// Without the check, such a store would open and then fail at every save.
  func checkLength() throws(RepositoryError) {
    guard name.utf8.count + Self.longestSuffix > FileName.limit else { return }
    throw RepositoryError(
      .unsupported,
      "the file's name has \(name.utf8.count) bytes; at most \(FileName.limit - Self.longestSuffix) leave room for "
        + "the names beside it", file: mainFile)
  }

  /// Returns the path of a name in the store's directory.
  func path(of name: String) -> String { (directory == "/" ? "" : directory) + "/" + name }

  /// Returns the path of a quarantine file, which keeps bytes that recovery cuts from a journal.
  ///
  /// Larder never removes a quarantine file.
  func quarantine(generation: UInt64, offset: Int) -> String { path(of: "\(quarantineStem)-quarantine-\(generation)-\(offset)") }

  /// New random path for a copy that is being written.
  ///
  /// The path is random, because a file with a fixed name may already exist.
  var newCopy: String { path(of: "\(copyStem)-copy-\(Hexadecimal.string(UInt64.random(in: .min ... .max)))-tmp") }

  /// True if a name is one that ``newCopy`` has made for this main file.
  func isCopy(_ other: String) -> Bool {
    guard other.utf8.starts(with: (copyStem + "-copy-").utf8), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(copyStem.utf8.count + 6).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Returns the path that a quarantine file has until an opening has reported the cut of its bytes.
  static func unreported(_ cut: OpenReport.CutTail) -> String { cut.quarantineFile + (cut.isAmbiguous ? "-due" : "-torn") }

  /// Returns the cut that a name made by ``unreported(_:)`` describes, or `nil` for any other name.
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

  /// Returns the numbers (generation and offset) in a quarantine file's name, which follow "-quarantine-".
  private func numbers(of other: String, before ending: String) -> [Substring] {
    Substring(other.utf8.dropFirst(quarantineStem.utf8.count + "-quarantine-".utf8.count).dropLast(ending.utf8.count)).split(separator: "-")
  }

  /// True for the name of a finished quarantine file, false for one that is being written.
  func isQuarantine(_ name: String) -> Bool {
    // A quarantine file that was set aside as `…-damaged` or `…-damaged-2` does not count, because it must not keep a new store from
    // opening.
    name.utf8.starts(with: (quarantineStem + "-quarantine-").utf8) && !name.hasSuffix("-tmp")
      && !name.dropFirst(quarantineStem.count).contains("-damaged")
  }

  /// Returns the temporary paths under which main file, journal and previous main file are written before their rename.
  func drafts(keepsPrevious: Bool) -> [String] {
    ([mainFile, journal] + (keepsPrevious ? [previous] : [])).map { $0 + FileReplacement.suffix }
  }

  /// Returns the sorted names of the temporary files that an interrupted run has left.
  func temporaryFiles(in fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var names: [String] = []
    for name in try (fileSystem.entries(of: directory) ?? []).sorted() where isTemporary(name) {
      // A directory cannot be a temporary file of Larder, and `unlink` on a directory would fail at each opening.
      if try fileSystem.status(of: path(of: name))?.kind != .directory { names.append(name) }
    }
    return names
  }

  /// True for a temporary name that an interrupted run of this store may have left, and for no similar name.
  ///
  /// Names are compared by their bytes: Swift strings that differ only in Unicode normalization are equal, but may name two files.
  private func isTemporary(_ other: String) -> Bool {
    ["-tmp", "-journal-tmp", "-previous-tmp"].contains { other.utf8.elementsEqual((name + $0).utf8) } || isCopy(other)
      || isTemporaryQuarantine(other)
  }

  private func isTemporaryQuarantine(_ other: String) -> Bool {
    guard other.utf8.starts(with: (quarantineStem + "-quarantine-").utf8), other.hasSuffix("-tmp") else { return false }
    let numbers = numbers(of: other, before: "-tmp")
    return numbers.count >= 2 && numbers.prefix(2).allSatisfy { UInt64($0) != nil }
  }
}
