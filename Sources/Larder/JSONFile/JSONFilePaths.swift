internal import Foundation

/// The names of a JSON store's files, all beside the main file and derived from its name.
struct JSONFilePaths: Sendable {
  let directory: String
  /// The main file: a JSON document, complete at all times.
  let mainFile: String
  /// The name of the main file in its directory.
  let name: String
  /// The beginnings of the names of quarantine files and of copies that are being written: the main file's name, shortened where theirs
  /// would not fit.
  private let quarantineStem, copyStem: String

  /// The longest of the suffixes that every store needs.
  private static let longestSuffix = "-previous-tmp".utf8.count
  /// As long as every copy's suffix: a number of 16 digits, and that of a temporary file.
  private static let copySuffix = "-copy-".utf8.count + 16 + "-tmp".utf8.count
  /// As long as a quarantine suffix can be: two numbers of 20 digits, and that of a temporary file.
  private static let longestQuarantineSuffix = "-quarantine--".utf8.count + 40 + "-tmp".utf8.count

  init(_ file: URL) {
    let url = file.standardizedFileURL
    mainFile = url.path
    directory = url.deletingLastPathComponent().path
    name = PathText.name(of: url.path)
    quarantineStem = FileName.shortened(name, leaving: Self.longestQuarantineSuffix)
    copyStem = FileName.shortened(name, leaving: Self.copySuffix)
  }

  var journal: String { mainFile + "-journal" }
  var lock: String { mainFile + "-lock" }
  /// The generation before the main file, kept if the options ask for it.
  var previous: String { mainFile + "-previous" }

  /// Refuses a name from which the names beside it cannot be made: it would open, and fail at every save.
  func checkLength() throws(RepositoryError) {
    guard name.utf8.count + Self.longestSuffix > FileName.limit else { return }
    throw RepositoryError(
      .unsupported,
      "the file's name has \(name.utf8.count) bytes; at most \(FileName.limit - Self.longestSuffix) leave room for "
        + "the names beside it", file: mainFile)
  }

  /// Returns the path of a file in the directory.
  func path(of name: String) -> String { (directory == "/" ? "" : directory) + "/" + name }

  /// Returns the path for bytes that are cut from a journal; never removed by Larder.
  func quarantine(generation: UInt64, offset: Int) -> String { path(of: "\(quarantineStem)-quarantine-\(generation)-\(offset)") }

  /// A new path under which a copy is written before it gets its name: a random one, since another file may have the usual one.
  var newCopy: String { path(of: "\(copyStem)-copy-\(Hexadecimal.string(UInt64.random(in: .min ... .max)))-tmp") }

  /// Whether a name in this directory is one that ``newCopy`` has made for the main file.
  func isCopy(_ other: String) -> Bool {
    guard other.utf8.starts(with: (copyStem + "-copy-").utf8), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(copyStem.utf8.count + 6).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Returns the path of bytes that were cut, until their cut was reported.
  static func unreported(_ cut: OpenReport.CutTail) -> String { cut.quarantineFile + (cut.isAmbiguous ? "-due" : "-torn") }

  /// Returns the cut that a name made by ``unreported(_:)`` describes; `nil` for any other name.
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

  /// Returns the parts of a quarantine file's name behind "-quarantine-".
  private func numbers(of other: String, before ending: String) -> [Substring] {
    Substring(other.utf8.dropFirst(quarantineStem.utf8.count + "-quarantine-".utf8.count).dropLast(ending.utf8.count)).split(separator: "-")
  }

  /// Whether a name is that of bytes kept aside, and not of a copy that was interrupted.
  func isQuarantine(_ name: String) -> Bool {
    // One that was itself set aside, as `…-damaged` or `…-damaged-2`, is out of the way.
    name.utf8.starts(with: (quarantineStem + "-quarantine-").utf8) && !name.hasSuffix("-tmp")
      && !name.dropFirst(quarantineStem.count).contains("-damaged")
  }

  /// Returns the paths under which the store's files are written before they get their names.
  func drafts(keepsPrevious: Bool) -> [String] {
    ([mainFile, journal] + (keepsPrevious ? [previous] : [])).map { $0 + FileReplacement.suffix }
  }

  /// Returns the names of what an interrupted run has left, in order; a directory is none of it.
  func temporaryFiles(in fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var names: [String] = []
    for name in try (fileSystem.entries(of: directory) ?? []).sorted() where isTemporary(name) {
      if try fileSystem.status(of: path(of: name))?.kind != .directory { names.append(name) }
    }
    return names
  }

  /// Whether a name is a temporary one that an interrupted run may have left; other files with names alike are not the store's.
  ///
  /// Names are compared by their bytes, here and above: texts that are equal but for their Unicode form name two files.
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
