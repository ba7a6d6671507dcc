import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// The bytes that a JSON store hands to the file system to write, folding and closing included.
@Suite("Bytes written", .timeLimit(.minutes(15))) struct WrittenBytesTests {
  /// A file system that counts the bytes that are written; those that it is asked to allocate are the file system's own affair.
  private final class Files: ForwardingFileSystem {
    let base: any FileSystem = SimulatedFileSystem()
    let written = Counter()

    func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
      guard let file = try base.open(path, writable: writable) else { return nil }
      return File(base: file, written: written)
    }
    func create(_ path: String) throws(RepositoryError) -> any OpenFile { File(base: try base.create(path), written: written) }
  }

  private final class Counter: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add(_ more: Int) { count.wrappingAdd(more, ordering: .relaxed) }
  }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let written: Counter

    init(base: any OpenFile, written: Counter) { (self.base, self.written) = (base, written) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
      written.add(bytes.count)
      try base.write(bytes, at: offset)
    }
    func allocate(_ range: Range<Int>) throws(RepositoryError) { try base.allocate(range) }
  }

  private func records(_ keys: [Int], _ commit: UInt64) -> [StoredRecord] {
    keys.map { key in
      let number = "\(commit)"
      return StoredRecord(
        collection: "places", key: RecordKey("00000000-0000-0000-0000-\(100_000_000_000 + key)"), revision: Revision(commit),
        schemaVersion: 1, value: Data("\"\(number)\(String(repeating: "v", count: 268 - number.count))\"".utf8))
    }
  }

  /// Records of 270 bytes in a store of a thousand, saved one by one, with a pause after each so many.
  ///
  /// The whole store is written anew only for half as much in the journal, in which a record takes 388 bytes.
  @Test(arguments: [1, 40, 400, 900, 2_600, 5_200], [true, false])
  func whatIsWrittenIsBoundedWhateverTheRhythm(savesInARow: Int, closes: Bool) throws {
    let files = Files()
    let file = URL(fileURLWithPath: "/data/places.json")
    let backend = JSONFileBackend(file: file, fileSystem: files, tuning: .init(smallFile: 1_024))
    _ = try backend.openAndRecover(.init()) { _ in }
    try backend.commit(WriteBatch(records: records(Array(0..<1_000), 1), commits: 1...1, durability: .durable))
    try backend.checkpoint()
    let before = files.written.value
    var folds = 0
    for save in 1...5_200 {
      let commit = UInt64(save + 1)
      try backend.commit(WriteBatch(records: records([save * 31 % 1_000], commit), commits: commit...commit, durability: .durable))
      if save % savesInARow == 0, backend.isCheckpointWorthwhile {
        try backend.checkpoint()
        folds += 1
      }
      let ratio = Double(files.written.value - before) / Double(save * 270)
      if save <= 400 { #expect(ratio < 1.5 && folds == 0, "\(ratio) bytes for each that was saved, without a fold") }
      try #require(ratio < 4.5, "\(ratio) bytes for each that was saved, after \(save) saves")
    }
    if closes { try backend.close() } else { backend.abandon() }
    #expect(Double(files.written.value - before) / Double(5_200 * 270) < 4.5)
    #expect(folds > 0)
  }
}
