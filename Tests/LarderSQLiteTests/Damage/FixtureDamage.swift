import Foundation
import Larder
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

/// A copy of a fixture whose files are changed in one bit, or cut to another length, and opened; blocking.
///
/// Only the first step of opening is taken: it reads and judges everything, and writes nothing, so that the copy can be used again.
final class FixtureDamage {
  struct Tally: CustomStringConvertible {
    /// Trials that gave all of the data, of which nothing was changed.
    var whole = 0
    /// Trials that gave an earlier state and said so.
    var reported = 0
    /// Trials that gave the state of an earlier commit at which the log ends whole, as after a crash before the next one.
    var earlier = 0
    /// Trials that were refused with an error that names the file.
    var refused = 0

    var count: Int { whole + reported + earlier + refused }
    var description: String { "\(count): \(whole) whole, \(reported) reported, \(earlier) earlier, \(refused) refused" }
  }

  private(set) var tally = Tally()
  private(set) var problems: [String] = []
  private let name: String
  private let directory: TemporaryDirectory
  private let original: [String: Data]
  private let commit: Revision
  /// The contents at each commit that a trial has shown.
  private var history: [Revision: Contents]

  init(_ name: String) throws {
    self.name = name
    directory = try TemporaryDirectory(inMemory: true)
    _ = try FormatFixture.copy(name, to: directory.url)
    original = try directory.contents()
    var contents: Contents = [:]
    let backend = FormatFixture.backend(directory.file(name))
    commit = try backend.open(.init()) { contents[$0.address] = text($0) }.commit
    backend.abandon()
    history = [commit: contents]
  }

  /// Damages each file.
  ///
  /// - Parameter sampled: The number of bits, and a third as many lengths, of each file; `nil` for all.
  func run(sampled: Int?, seed: UInt64) throws {
    var random = SeededGenerator(seed)
    for (file, bytes) in original.sorted(by: { $0.key < $1.key }) {
      let descriptor = open(directory.pathOfFile(file), O_RDWR | O_CLOEXEC)
      try #require(descriptor >= 0)
      defer { close(descriptor) }
      // Downwards, so that the file is only ever cut.
      for length in Self.some(of: bytes.count, sampled.map { $0 / 3 }, &random).reversed() {
        try #require(ftruncate(descriptor, off_t(length)) == 0)
        judge(isWholeLog: file.hasSuffix("-wal") && Self.endsWithAFrame(length), "\(file), cut to \(length) bytes")
      }
      try write(bytes, 0, descriptor)
      for bit in Self.some(of: 8 * bytes.count, sampled, &random) {
        try write(Data([bytes[bit / 8] ^ 1 << UInt8(bit % 8)]), bit / 8, descriptor)
        judge(isWholeLog: false, "\(file), bit \(bit % 8) of byte \(bit / 8)")
        try write(bytes[bit / 8...bit / 8], bit / 8, descriptor)
      }
    }
    let names = Set(original.keys)
    #expect(try directory.contents().filter { names.contains($0.key) } == original, "\(name): a first step of opening has written")
  }

  private static func some(of count: Int, _ wanted: Int?, _ random: inout SeededGenerator) -> [Int] {
    guard let wanted, wanted < count else { return Array(0..<count) }
    return (0..<wanted).map { _ in random.int(0..<count) }.sorted()
  }

  private static func endsWithAFrame(_ length: Int) -> Bool { length == 0 || length >= 32 && (length - 32) % (24 + 4_096) == 0 }

  private func write(_ bytes: Data, _ offset: Int, _ descriptor: Int32) throws {
    try #require(bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count)
  }

  private func judge(isWholeLog: Bool, _ what: @autoclosure () -> String) {
    var found: Contents = [:]
    let backend = FormatFixture.backend(directory.file(name))
    do throws(RepositoryError) {
      let report = try backend.open(.init()) { found[$0.address] = text($0) }
      backend.abandon()
      if let known = history[report.commit], known != found { return note("two states of commit \(report.commit)", what()) }
      history[report.commit] = found
      if report.commit == commit {
        tally.whole += 1
      } else if report.cutTail != nil {
        tally.reported += 1
      } else if isWholeLog {
        tally.earlier += 1
      } else {
        note("commit \(report.commit) without a word", what())
      }
    } catch {
      tally.refused += 1
      let isPrecise = error.file?.hasPrefix(directory.pathOfFile(name)) == true
      if !isPrecise || ![.corrupted, .notOurStore, .newerSchema].contains(error.code) { note("\(error)", what()) }
    }
  }

  private func note(_ problem: String, _ what: String) { problems.append("\(what): \(problem)") }
}
