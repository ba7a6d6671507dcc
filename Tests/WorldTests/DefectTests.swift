import Foundation
import Larder
import TestSupport
import Testing

/// Defects that were found in the world around a store, each under its own name.
@Suite("The world: defects that were found", .timeLimit(.minutes(15))) struct DefectTests {
  private let directory: TemporaryDirectory
  private let other: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory(inMemory: !Torture.isOn)
    other = try TemporaryDirectory(inMemory: !Torture.isOn)
  }

  /// Makes a store of two records, and closes it.
  private func makeStore(_ backing: Backing) throws -> URL {
    let file = directory.file(backing.fileName)
    let store = try backing.open(file)
    for commit in 1...2 as ClosedRange<UInt64> { try store.save(commit) }
    try store.backend.close()
    return file
  }

  private static let all = Answer.everything(["spots/1", "spots/2"])

  @Test(arguments: Backing.allCases) func aFileThatIsAlsoNamedLikeTheLockIsNotOverwritten(_ backing: Backing) throws {
    let file = try makeStore(backing)
    let diary = other.file("diary")
    try EntryKind.diary.write(to: diary)
    #expect(chmod(diary.path, 0o644) == 0)
    for access in backing.accesses {
      try? FileManager.default.removeItem(atPath: file.path + "-lock")
      try FileManager.default.linkItem(atPath: diary.path, toPath: file.path + "-lock")
      #expect(backing.answer(file, access) == (backing == .json ? Self.all : .refused(.unsupported)), "\(access)")
      #expect(try Data(contentsOf: diary) == EntryKind.diary, "\(access)")
      let mode = try FileManager.default.attributesOfItem(atPath: diary.path)[.posixPermissions] as? Int
      #expect(mode == 0o644, "\(access)")
    }
  }

  @Test func aLockWithTwoNamesExcludesAllTheSame() throws {
    let file = directory.file("spots.json")
    try EntryKind.diary.write(to: other.file("diary"))
    try FileManager.default.linkItem(atPath: other.pathOfFile("diary"), toPath: file.path + "-lock")
    let lock = try POSIXFileSystem().lock(file.path + "-lock")
    #expect(Backing.json.answer(file) == .refused(.alreadyOpen))
    lock.release()
    #expect(Backing.json.answer(file) == .everything([]))
  }

  /// Where root opens the store of another user, that user could have given it any file of root's under the name of the lock.
  @Test(.enabled(if: geteuid() == 0, "only root may give files away"), arguments: Backing.allCases)
  func rootGivesNoFileAwayThatHasAnotherName(_ backing: Backing) throws {
    let file = try makeStore(backing)
    let secret = other.file("secret")
    try EntryKind.diary.write(to: secret)
    try FileManager.default.linkItem(atPath: secret.path, toPath: file.path + "-lock")
    #expect(chown(directory.path, 4_711, 4_711) == 0 && chown(file.path, 4_711, 4_711) == 0)
    _ = backing.answer(file)
    let owner = try FileManager.default.attributesOfItem(atPath: secret.path)[.ownerAccountID] as? Int
    #expect(owner == 0)
  }

  @Test(arguments: ["-wal", "-shm"]) func aFileThatIsAlsoNamedLikeTheLogIsNotOverwritten(_ suffix: String) throws {
    let file = try makeStore(.sqlite)
    let diary = other.file("diary")
    try EntryKind.diary.write(to: diary)
    try FileManager.default.linkItem(atPath: diary.path, toPath: file.path + suffix)
    for access in Backing.sqlite.accesses {
      #expect(Backing.sqlite.answer(file, access) == .refused(.unsupported), "\(access)")
      #expect(try Data(contentsOf: diary) == EntryKind.diary, "\(access)")
    }
  }

  @Test func aDirectoryUnderTheNameOfAnInterruptedCopyClosesNoStore() throws {
    let file = try makeStore(.json)
    for suffix in ["-copy-0123456789abcdef-tmp", "-quarantine-1-64-tmp", "-previous-tmp"] {
      try FileManager.default.createDirectory(atPath: file.path + suffix, withIntermediateDirectories: false)
    }
    let store = try Backing.json.open(file)
    #expect(store.report.isClean && store.keys.count == 2)
    try store.backend.close()
    #expect(try directory.names.count == 4)
  }

  @Test func aDirectoryUnderTheNameOfADraftIsSaidBeforeAnythingChanges() throws {
    let file = try makeStore(.json)
    for suffix in ["-tmp", "-journal-tmp"] {
      try FileManager.default.createDirectory(atPath: file.path + suffix, withIntermediateDirectories: false)
      let error = #expect(throws: RepositoryError.self) { _ = try Backing.json.open(file) }
      #expect(error?.code == .unsupported && error?.file == file.path + suffix)
      try FileManager.default.removeItem(atPath: file.path + suffix)
    }
    #expect(Backing.json.answer(file) == Self.all)
  }

  @Test(arguments: ["-new-journal", "-new-shm"]) func aDirectoryBesideTheLeftoversOfACreationClosesNoStore(_ suffix: String) throws {
    let file = directory.file("spots.sqlite")
    for name in ["-new", suffix] {
      if name == "-new" {
        try Data().write(to: URL(fileURLWithPath: file.path + name))
      } else {
        try FileManager.default.createDirectory(atPath: file.path + name, withIntermediateDirectories: false)
      }
    }
    #expect(Backing.sqlite.answer(file) == .everything([]))
    _ = try makeStore(.sqlite)
    for access in Backing.sqlite.accesses { #expect(Backing.sqlite.answer(file, access) == Self.all, "\(access)") }
    #expect(try directory.names.sorted() == ["spots.sqlite", "spots.sqlite-new", "spots.sqlite" + suffix])
  }

  @Test func aLinkToADatabaseThatWasMovedAwayIsMissed() throws {
    let file = try makeStore(.sqlite)
    for access in Backing.sqlite.writers {
      let store = try Backing.sqlite.open(file, access)
      try FileManager.default.moveItem(atPath: file.path, toPath: other.pathOfFile("moved"))
      try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: other.pathOfFile("moved"))
      let error = #expect(throws: RepositoryError.self) { try store.save(3) }
      #expect(error?.code == .dataMissing, "\(access)")
      try FileManager.default.removeItem(atPath: file.path)
      try FileManager.default.moveItem(atPath: other.pathOfFile("moved"), toPath: file.path)
      try store.backend.close()
      #expect(Backing.sqlite.answer(file) == Self.all, "\(access)")
    }
  }

  @Test(arguments: Backing.allCases) func aByteOrderMarkIsPartOfTheName(_ backing: Backing) throws {
    for (index, name) in ["spots", "\u{FEFF}spots"].enumerated() {
      let store = try backing.open(URL(fileURLWithPath: directory.path + "/" + name))
      #expect(store.report.isNew, "\(index)")
      try store.save(1, in: "of\(index)")
      try store.backend.close()
    }
    #expect(try POSIXFileSystem().entries(of: directory.path)?.count == 2)
  }

  @Test func aStoreThatIsMissingBesideARollbackJournalIsMissingForReadersToo() throws {
    let file = directory.file("spots.sqlite")
    try EntryKind.diary.write(to: URL(fileURLWithPath: file.path + "-journal"))
    for access in Backing.sqlite.accesses { #expect(Backing.sqlite.answer(file, access) == .refused(.dataMissing), "\(access)") }
  }
}
