import Foundation

@testable import Larder
@testable import LarderSQLite

/// The opening of a SQLite store after damage: it is refused unchanged, or has the records of some commit.
///
/// An input says how a database and its log are damaged. They are in a folder in memory where the system has one.
enum SQLiteTarget {
  private static let names = ["s.sqlite", "s.sqlite-wal"]

  /// A store at several moments, and what it held at each commit.
  private struct Template {
    var moments: [DamagePlan.Contents] = []
    var history: [UInt64: StoreImage] = [0: StoreImage()]
  }

  private static let template = Result { try makeTemplate() }

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    let (contents, history, wasDamaged) = try damage(bytes)
    try inFolder { folder in
      for (name, bytes) in contents {
        let path = folder.appending(path: name).path
        try promise(FileManager.default.createFile(atPath: path, contents: Data(bytes)), "a file cannot be written: \(path)")
      }
      try open(folder, contents, history, wasDamaged: wasDamaged)
    }
  }

  /// Returns the files that an input stands for, what the store held at each commit, and whether they were damaged.
  static func damage(
    _ bytes: UnsafeRawBufferPointer
  ) throws -> (contents: DamagePlan.Contents, history: [UInt64: StoreImage], wasDamaged: Bool) {
    let template = try template.get()
    var input = FuzzInput(bytes)
    let start = template.moments[input.int(below: template.moments.count)]
    var contents = start
    DamagePlan.apply(&input, to: &contents, names: names, earlier: template.moments)
    return (contents, template.history, contents != start)
  }

  private static func open(
    _ folder: URL, _ before: DamagePlan.Contents, _ history: [UInt64: StoreImage], wasDamaged: Bool
  ) throws {
    let store = SQLiteBackend(file: folder.appending(path: "s.sqlite"))
    let opened: (image: StoreImage, report: OpenReport)
    do {
      opened = try StoreImage.read(store)
    } catch let error as RepositoryError {
      try promise(wasDamaged, "a store that was not damaged is refused: \(error)")
      try promise([.corrupted, .newerSchema, .notOurStore, .dataMissing].contains(error.code), "expected a refusal, found \(error)")
      return try promise(try snapshot(folder) == before, "a store that was refused has been changed")
    }
    try promise(try snapshot(folder) == before, "the first step of opening has changed the files")
    if opened.report.isNew {
      try promise(before.isEmpty, "a new store was made where there was one")
    } else {
      try promise(history[opened.image.commit] == opened.image, "commit \(opened.image.commit) has records that it never had")
    }
    _ = try store.recover(opened.report)
    var image = opened.image
    var choice = FuzzInput(UnsafeRawBufferPointer(start: nil, count: 0))
    let batch = image.nextBatch(&choice)
    // A store without a log to recover is opened without SQLite's own check: damage between its records shows when it is asked for, or when
    // a write meets it.
    let log = before[names[1], default: []]
    let mayHideDamage = wasDamaged && (log.isEmpty || log.starts(with: SQLiteLogInspection.emptyMark))
    do {
      try store.commit(batch)
    } catch {
      try promise(mayHideDamage && error.code == .corrupted, "a store that was recovered cannot be written: \(error)")
      return store.abandon()
    }
    image.apply(batch)
    let verified = store.verify()
    try promise(verified.isSound || mayHideDamage, "a store that was recovered is not sound: \(verified.problems)")
    let reader = SQLiteBackend(file: folder.appending(path: "s.sqlite"))
    let read = try StoreImage.read(reader, StoreOptions(access: .readOnly))
    try promise(read.image == image, "reading only gives other records than were written")
    try reader.close()
    try store.close()
    let reopened = try StoreImage.read(store)
    try promise(reopened.image == image, "a store that was recovered and written to has other records when it is opened again")
    store.abandon()
  }

  private static func makeTemplate() throws -> Template {
    var template = Template()
    try inFolder { folder in
      let store = SQLiteBackend(file: folder.appending(path: "s.sqlite"))
      var (image, report) = try StoreImage.read(store)
      _ = try store.recover(report)
      for step in 0..<6 {
        let choices: [UInt8] = [2, UInt8(step), 0x43 + UInt8(step), 0x80 + UInt8(step)]
        let batch = choices.withUnsafeBytes { bytes in
          var input = FuzzInput(bytes)
          return image.nextBatch(&input)
        }
        try store.commit(batch)
        image.apply(batch)
        template.history[image.commit] = image
        if step == 2 { try store.checkpoint() }
        template.moments.append(try snapshot(folder))
      }
      report.isNew = false
      try store.close()
      template.moments.append(try snapshot(folder))
    }
    return template
  }

  private static func inFolder(_ body: (URL) throws -> Void) throws {
    let shared = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    let parent = FileManager.default.isWritableFile(atPath: shared.path) ? shared : FileManager.default.temporaryDirectory
    let folder = parent.appending(path: "larder-fuzz-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let result = Result { try body(folder) }
    try FileManager.default.removeItem(at: folder)
    try result.get()
  }

  /// Returns the contents of the database and its log.
  private static func snapshot(_ folder: URL) throws -> DamagePlan.Contents {
    var contents: DamagePlan.Contents = [:]
    for name in names {
      if let data = FileManager.default.contents(atPath: folder.appending(path: name).path) { contents[name] = [UInt8](data) }
    }
    return contents
  }
}
