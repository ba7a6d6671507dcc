import Foundation
import Larder
import TestSupport
import Testing

/// Files that are moved, replaced, cut or linked under an open store: the next write says so, and nothing acknowledged is lost.
@Suite("The world: files that change under an open store", .timeLimit(.minutes(15))) struct OpenStoreTests {
  private let directory: TemporaryDirectory
  private let aside: TemporaryDirectory

  init() throws { (directory, aside) = (try TemporaryDirectory(inMemory: !Torture.isOn), try TemporaryDirectory(inMemory: !Torture.isOn)) }

  /// Something that happens to a file, or to the directory, and can be undone.
  private enum Event: CaseIterable {
    case movedAway, removed, replacedByCopy, replacedByOther, replacedByDirectory, replacedByLink, cut, cutToNothing, touchedInFuture,
      touchedInPast
    case secondName, modeTaken

    /// Whether the bytes that come back are not in the file that the store has open, or are not what it has synced.
    var changesFile: Bool { [.removed, .cut, .cutToNothing].contains(self) }
    /// Whether the name means another file afterwards, or none.
    var takesName: Bool { [.movedAway, .removed, .replacedByCopy, .replacedByOther, .replacedByDirectory, .replacedByLink].contains(self) }
  }

  /// The code of the next write, or `nil` where it succeeds.
  private func expected(_ backing: Backing, _ suffix: String, _ event: Event) -> RepositoryError.Code? {
    switch suffix {
    case "-lock": nil  // the lock on the main file holds
    case "-shm" where backing == .json: nil
    default:
      if event.takesName { .dataMissing } else if backing == .json, [.cut, .cutToNothing].contains(event) { .dataMissing } else { nil }
    }
  }

  @Test(arguments: Backing.allCases) func theNextWriteSaysSoAndNothingIsLost(_ backing: Backing) throws {
    var count = 0
    for access in backing.writers {
      for suffix in ["", backing.log, "-lock"] + (backing == .sqlite ? ["-shm"] : []) {
        for event in Event.allCases {
          // Cutting a file that SQLite has mapped, or reads its pages from, is damage, and not a situation.
          if backing == .sqlite, [.cut, .cutToNothing].contains(event), suffix != "-lock" { continue }
          try check(backing, access, suffix, event)
          count += 1
        }
      }
    }
    print("figures: situations \(count) (files of \(backing) that change while it is open)")
  }

  private func check(_ backing: Backing, _ access: StoreOptions.Access, _ suffix: String, _ event: Event) throws {
    let what = "\(backing), \(access), \(event) '\(suffix)'"
    try directory.clear()
    try aside.clear()
    let file = directory.file(backing.fileName)
    let store = try backing.open(file, access)
    try store.save(1)
    try store.backend.checkpoint()
    try store.save(2)
    let (path, saved) = (file.path + suffix, directory.path + "/aside")
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    try happen(event, path, saved)
    let found = code { try store.save(3) }
    #expect(found == expected(backing, suffix, event), "\(what): the write")
    // Nobody else comes in, by this name or another.
    let second = backing.answer(file, backing == .json ? .exclusive : access == .shared ? .exclusive : .shared)
    if case .everything(let keys) = second { Issue.record("\(what): a second opener gets in, and finds \(keys.sorted())") }
    try undo(event, path, saved, before)
    let next: UInt64 = found == nil ? 4 : 3
    if !(event.changesFile && found != nil) {
      try store.save(next)
      try store.backend.close()
      #expect(backing.answer(file) == .everything(Set((1...next).map { "spots/\($0)" })), "\(what): afterwards")
    } else {
      // The bytes are back, but they are not what the store has synced: it is opened again.
      store.backend.abandon()
      #expect(backing.answer(file) == .everything(["spots/1", "spots/2"]), "\(what): afterwards")
    }
  }

  private func happen(_ event: Event, _ path: String, _ saved: String) throws {
    let files = FileManager.default
    if event.takesName, event != .removed { try files.moveItem(atPath: path, toPath: saved) }
    switch event {
    case .movedAway: break
    case .removed: try files.removeItem(atPath: path)
    case .replacedByCopy: try files.copyItem(atPath: saved, toPath: path)
    case .replacedByOther: try EntryKind.text.make(path, beside: aside)
    case .replacedByDirectory: try EntryKind.directory.make(path, beside: aside)
    case .replacedByLink: try files.createSymbolicLink(atPath: path, withDestinationPath: saved)
    case .cut: #expect(truncate(path, off_t(try Data(contentsOf: URL(fileURLWithPath: path)).count / 2)) == 0)
    case .cutToNothing: #expect(truncate(path, 0) == 0)
    case .touchedInFuture: try files.setAttributes([.modificationDate: Date(timeIntervalSinceNow: 365 * 86_400)], ofItemAtPath: path)
    case .touchedInPast: try files.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -365 * 86_400)], ofItemAtPath: path)
    case .secondName: try files.linkItem(atPath: path, toPath: saved)
    case .modeTaken: #expect(chmod(path, 0) == 0)
    }
  }

  private func undo(_ event: Event, _ path: String, _ saved: String, _ before: Data) throws {
    let files = FileManager.default
    if event.takesName, event != .removed {
      if event != .movedAway { try? files.removeItem(atPath: path) }
      try files.moveItem(atPath: saved, toPath: path)
    }
    switch event {
    case .secondName: try files.removeItem(atPath: saved)
    case .modeTaken: #expect(chmod(path, 0o600) == 0)
    case .removed: try before.write(to: URL(fileURLWithPath: path))
    case .cut, .cutToNothing: if files.fileExists(atPath: path) { try before.write(to: URL(fileURLWithPath: path)) }
    default: break
    }
  }

  // MARK: The directory

  @Test(arguments: Backing.allCases) func aDirectoryThatMovesOrGoesIsMissed(_ backing: Backing) throws {
    let (home, moved) = (directory.url.appendingPathComponent("home"), directory.url.appendingPathComponent("moved"))
    for access in backing.writers {
      for isReplaced in [false, true] {
        try directory.clear()
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: false)
        let file = home.appendingPathComponent(backing.fileName)
        let store = try backing.open(file, access)
        try store.save(1)
        try FileManager.default.moveItem(at: home, to: moved)
        if isReplaced { try FileManager.default.createDirectory(at: home, withIntermediateDirectories: false) }
        #expect(code { try store.save(2) } == .dataMissing, "\(backing), \(access), \(isReplaced)")
        if isReplaced { try FileManager.default.removeItem(at: home) }
        try FileManager.default.moveItem(at: moved, to: home)
        try store.save(2)
        try store.backend.close()
        #expect(backing.answer(file) == .everything(["spots/1", "spots/2"]), "\(backing), \(access)")
      }
      let store = try backing.open(home.appendingPathComponent(backing.fileName), access)
      try FileManager.default.removeItem(at: home)
      #expect(code { try store.save(3) } == .dataMissing, "\(backing), \(access), removed")
      store.backend.abandon()
    }
    print("figures: situations \(backing.writers.count * 3) (the directory of \(backing) while it is open)")
  }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code ?? .inputOutput
    }
  }
}
