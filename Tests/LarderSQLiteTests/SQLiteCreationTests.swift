import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

@Suite("SQLite: creation", .timeLimit(.minutes(15)), .serialized)
struct SQLiteCreationTests {
  let directory: TemporaryDirectory
  let url: URL

  init() throws {
    directory = try TemporaryDirectory()
    url = directory.file("deep/er/spots.sqlite")
  }

  private func mode(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  @Test(arguments: [mode_t(0o000), 0o022, 0o077, 0o777])
  func filesAreForTheirOwnerOnlyWhateverTheUmask(_ mask: mode_t) throws {
    let before = umask(mask)
    defer { umask(before) }
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    for suffix in ["", "-wal", "-shm", "-lock"] { #expect(try mode(url.path + suffix) == 0o600, "\(suffix)") }
    for path in ["deep", "deep/er"] { #expect(try mode(directory.file(path).path) == 0o700) }
    try backend.backup(to: directory.file("deep/copy.sqlite"))
    #expect(try mode(directory.file("deep/copy.sqlite").path) == 0o600)
    try backend.close()
    #expect(try mode(url.path) == 0o600)
  }

  @Test func onlyAbsenceCreatesAStore() throws {
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data().write(to: url)
    #expect(code { _ = try readBack(url) } == .corrupted)
    #expect(try Data(contentsOf: url).isEmpty)
    try FileManager.default.removeItem(at: url)
    for suffix in ["-wal", "-journal"] {
      let other = URL(filePath: url.path + suffix)
      try Data("log".utf8).write(to: other)
      #expect(code { _ = try readBack(url) } == .dataMissing)
      #expect(try Data(contentsOf: other) == Data("log".utf8))
      try FileManager.default.removeItem(at: other)
    }
    #expect(try readBack(url).report.isNew)
  }

  @Test func aCreationThatWasCutShortStartsAgain() throws {
    let folder = url.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for suffix in ["-new", "-new-journal", "-new-wal", "-new-shm"] {
      try Data(count: suffix == "-new" ? 4_096 : suffix == "-new-wal" ? 0 : 8).write(to: URL(filePath: url.path + suffix))
    }
    try Data("mine".utf8).write(to: folder.appending(path: "spots.sqlite-other"))
    let (report, _) = try readBack(url)
    #expect(report.isNew && report.removedTemporaryFiles.count == 4 && !report.isClean)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["spots.sqlite", "spots.sqlite-other"])
  }

  @Test func whatAPowerCutOrAKillLeavesOfACreationIsRemoved() throws {
    let folder = url.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // The database lost its name, and its journal did not; or the first write ended after some bytes.
    let leftovers = [
      ("-new-journal", Data()), ("-new2-journal", Data(count: 512)), ("-new3", Data("SQ".utf8)), ("-new5-shm", Data(count: 32_768)),
      // One byte of the beginning, over the zeros.
      ("-new7-journal", Data([0xD9] + [UInt8](repeating: 0, count: 511))),
    ]
    for (suffix, bytes) in leftovers { try bytes.write(to: URL(filePath: url.path + suffix)) }
    // The log of a database that was moved away, and a journal that SQLite did not write.
    let others = ["spots.sqlite-new4-wal", "spots.sqlite-new6-journal"]
    for name in others { try Data("frames".utf8).write(to: folder.appending(path: name)) }
    let (report, _) = try readBack(url)
    #expect(report.removedTemporaryFiles.count == leftovers.count)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["spots.sqlite"] + others)
  }

  /// Its commits are in its log: the database alone looks like one that was never used.
  @Test func aStoreUnderTheNameOfADraftKeepsItsCommits() throws {
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    let other = URL(filePath: url.path + "-new")
    let backend = SQLiteBackend(file: other)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    #expect(try readBack(url).report.isNew)
    // As a killed process leaves it.
    backend.abandon()
    #expect(try !readBack(url).report.isNew)
    #expect(try readBack(other).contents.count == 1)
  }

  @Test func whatLiesUnderTheNameOfADraftIsNotRemovedUnlessItIsOne() throws {
    let (mine, copy, folder) = (directory.file("mine.sqlite"), directory.file("copy.sqlite"), directory.url.path)
    let backend = SQLiteBackend(file: mine)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.backup(to: directory.file("copy.sqlite-new"))
    try backend.backup(to: copy)
    try Data("diary".utf8).write(to: directory.file("other.sqlite-new"))
    try FileManager.default.createDirectory(at: directory.file("third.sqlite-new"), withIntermediateDirectories: false)
    for name in ["other.sqlite", "third.sqlite"] { try backend.backup(to: directory.file(name)) }
    try backend.close()
    let left = ["copy.sqlite", "copy.sqlite-new", "mine.sqlite", "other.sqlite", "other.sqlite-new", "third.sqlite", "third.sqlite-new"]
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == left)
    #expect(try readBack(directory.file("copy.sqlite-new")).contents.count == 1)
    for name in ["copy.sqlite", "other.sqlite", "third.sqlite"] {
      try FileManager.default.removeItem(at: directory.file(name))
      #expect(try readBack(directory.file(name)).report.isClean)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == left)
    #expect(try readBack(directory.file("copy.sqlite-new")).contents.count == 1)
  }

  @Test func linksAreFollowedInDirectoriesButNotForTheFile() throws {
    _ = try readBack(url)
    let link = directory.file("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url.deletingLastPathComponent())
    #expect(try !readBack(link.appending(path: "spots.sqlite")).report.isNew)
    let fileLink = directory.file("link.sqlite")
    try FileManager.default.createSymbolicLink(at: fileLink, withDestinationURL: url)
    #expect(code { _ = try readBack(fileLink) } == .unsupported)
    let dangling = directory.file("dangling.sqlite")
    try FileManager.default.createSymbolicLink(at: dangling, withDestinationURL: directory.file("nothing"))
    #expect(code { _ = try readBack(dangling) } == .unsupported)
    #expect(!FileManager.default.fileExists(atPath: directory.file("nothing").path))
  }

  @Test func theSameFileByAnotherPathIsAlreadyOpen() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let link = directory.file("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url.deletingLastPathComponent())
    #expect(code { _ = try SQLiteBackend(file: link.appending(path: "spots.sqlite")).openAll() } == .alreadyOpen)
    try backend.close()
  }

  @Test(arguments: ["a b#?%41&é.sqlite", "file:x", "-", "ünï 🗾.db", "?immutable=1"])
  func namesMayHoldWhatAURLWouldRead(_ name: String) throws {
    let odd = directory.url.appending(path: name, directoryHint: .notDirectory)
    let backend = SQLiteBackend(file: odd)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
    #expect(try readBack(odd).contents.count == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == [name])
  }

  @Test func aDirectoryOrARemoteURLIsNotAFile() throws {
    #expect(code { _ = try readBack(directory.url) } == .unsupported)
    #expect(code { _ = try readBack(URL(string: "https://example.org/spots.sqlite")!) } == .unsupported)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(URL(filePath: url.path, directoryHint: .notDirectory)) }
    #expect(error?.code == .unsupported, "\(String(describing: error))")
  }

  @Test func aStoreIsSyncedBeforeItGetsItsNameAndTheNameAfterwards() throws {
    let files = RecordingFileSystem()
    let backend = SQLiteBackend(file: url, fileSystem: files)
    _ = try backend.openAll()
    try backend.close()
    let steps = files.steps.filter { ["create", "sync", "rename", "syncDirectory"].contains($0.components(separatedBy: " ")[0]) }
    // The directory is synced for the name of the store, by its creation and, as after one that was killed, before there is a log; and
    // before the first commit for the name of the log.
    let syncs = Array(repeating: "syncDirectory er", count: 3)
    #expect(steps == ["create spots.sqlite-new", "sync spots.sqlite-new", "rename spots.sqlite"] + syncs)
  }

  @Test func aLogThatWasLeftIsSyncedBeforeItIsRead() throws {
    do {
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit([record("a", "1", at: 1)], at: 1)
    }
    let files = RecordingFileSystem()
    let backend = SQLiteBackend(file: url, fileSystem: files)
    _ = try backend.openAll()
    try backend.close()
    #expect(
      Array(files.steps.filter { $0.contains("sync ") || $0.contains("syncDirectory") || $0.contains("read") }.prefix(3)) == [
        "sync spots.sqlite-wal", "syncDirectory er", "read spots.sqlite-wal",
      ])
  }
}
