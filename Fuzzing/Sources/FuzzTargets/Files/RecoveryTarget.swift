import Foundation
import LarderTesting

@testable import Larder

/// The opening of a JSON store after damage: whatever happened to its files, it is refused unchanged, or has the records of some commit.
///
/// An input says what is committed, then how the files are damaged. All is in memory.
enum RecoveryTarget {
  private static let path = "/d/s.json"
  private static let names = ["s.json", "s.json-journal", "s.json-tmp", "s.json-journal-tmp", "s.json-previous", "s.json-quarantine-1-64"]

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    let (contents, history, wasDamaged) = try damage(bytes)
    try open(try files(contents), after: history, wasDamaged: wasDamaged)
  }

  /// Returns the files that an input stands for, what the store held at each commit, and whether they were damaged.
  static func damage(
    _ bytes: UnsafeRawBufferPointer
  ) throws -> (contents: DamagePlan.Contents, history: [UInt64: StoreImage], wasDamaged: Bool) {
    var input = FuzzInput(bytes)
    var history: [UInt64: StoreImage] = [0: StoreImage()]
    var moments: [DamagePlan.Contents] = []
    try work(on: try files([:]), &input, &history, &moments)
    var contents = moments.last ?? [:]
    DamagePlan.apply(&input, to: &contents, names: names, earlier: moments)
    return (contents, history, contents != moments.last)
  }

  /// Commits, folds and closes as the input says; notes each state, and the files at each moment.
  private static func work(
    on files: SimulatedFileSystem, _ input: inout FuzzInput, _ history: inout [UInt64: StoreImage], _ moments: inout [DamagePlan.Contents]
  ) throws {
    var store = backend(files)
    var (image, report) = try StoreImage.read(store)
    _ = try store.recover(report)
    for _ in 0..<(1 + input.int(below: 6)) {
      switch input.int(below: 8) {
      case 6: try store.checkpoint()
      case 7:
        try store.close()
        store = backend(files)
        (_, report) = try StoreImage.read(store)
        _ = try store.recover(report)
      default:
        let batch = image.nextBatch(&input)
        try store.commit(batch)
        image.apply(batch)
        history[image.commit] = image
      }
      moments.append(try snapshot(files))
    }
    if input.bool() {
      try store.close()
      moments.append(try snapshot(files))
    } else {
      store.abandon()
    }
  }

  /// Opens what is left, writes to it, and opens it again.
  private static func open(_ files: SimulatedFileSystem, after history: [UInt64: StoreImage], wasDamaged: Bool) throws {
    let before = try snapshot(files)
    let opened: (image: StoreImage, report: OpenReport)
    let store = backend(files)
    do {
      opened = try StoreImage.read(store)
    } catch let error as RepositoryError {
      try promise(wasDamaged, "a store that was not damaged is refused: \(error)")
      try promise([.corrupted, .newerSchema, .notOurStore, .dataMissing].contains(error.code), "expected a refusal, found \(error)")
      return try promise(try snapshot(files) == before, "a store that was refused has been changed")
    }
    try promise(try snapshot(files) == before, "the first step of opening has changed the files")
    if opened.report.isNew {
      try promise(before["s.json"] == nil && before["s.json-journal"] == nil, "a new store was made where there was one")
    } else {
      try promise(history[opened.image.commit] == opened.image, "commit \(opened.image.commit) has records that it never had")
      let readOnly = try StoreImage.read(backend(files), StoreOptions(access: .readOnly))
      try promise(readOnly.image == opened.image, "reading only gives other records")
    }
    _ = try store.recover(opened.report)
    var image = opened.image
    var choice = FuzzInput(UnsafeRawBufferPointer(start: nil, count: 0))
    let batch = image.nextBatch(&choice)
    try store.commit(batch)
    image.apply(batch)
    let verified = store.verify()
    try promise(verified.isSound, "a store that was recovered is not sound: \(verified.problems)")
    try store.close()
    let again = backend(files)
    let reopened = try StoreImage.read(again)
    try promise(reopened.image == image, "a store that was recovered and written to has other records when it is opened again")
    try promise(reopened.report.storeID == opened.report.storeID, "a store has another identity when it is opened again")
    again.abandon()
  }

  private static func backend(_ files: SimulatedFileSystem) -> JSONFileBackend {
    JSONFileBackend(file: URL(filePath: path), fileSystem: files, tuning: .init(journalChunk: 512, smallFile: 256))
  }

  private static func files(_ contents: DamagePlan.Contents) throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    try files.createDirectory("/d")
    for (name, bytes) in contents { try files.place(Data(bytes), at: "/d/" + name) }
    return files
  }

  /// Returns the contents of all files but the lock's.
  private static func snapshot(_ files: SimulatedFileSystem) throws -> DamagePlan.Contents {
    var contents: DamagePlan.Contents = [:]
    for path in files.paths where !path.hasSuffix("-lock") {
      contents[String(path.dropFirst(3))] = files.contents(of: path).map { [UInt8]($0) }
    }
    return contents
  }
}
