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

  /// A trial that could not be made.
  struct Failure: Error {
    let call: String
    let errorNumber: Int32
  }

  private(set) var tally = Tally()
  private(set) var problems: [String] = []
  private let name: String
  private let directory: TemporaryDirectory
  private let original: [String: Data]
  /// The report of opening the copy undamaged.
  private let report: OpenReport
  /// The contents of the copy undamaged.
  private let last: Contents
  /// The contents at each commit that a trial has shown.
  private var history: [Revision: Contents]

  init(_ name: String) throws {
    self.name = name
    directory = try TemporaryDirectory(inMemory: true)
    _ = try FormatFixture.copy(name, to: directory.url)
    original = try directory.contents()
    var contents: Contents = [:]
    let backend = FormatFixture.backend(directory.file(name))
    report = try backend.open(.init()) { contents[$0.address] = text($0) }
    backend.abandon()
    last = contents
    history = [report.commit: contents]
  }

  /// Damages each file.
  ///
  /// - Parameter sampled: The number of bits, and a third as many lengths, of each file, beside a bit of each byte of its header; `nil` for
  ///   all.
  func run(sampled: Int?, seed: UInt64) throws {
    var random = SeededGenerator(seed)
    for (file, bytes) in original.sorted(by: { $0.key < $1.key }) {
      let descriptor = open(directory.pathOfFile(file), O_RDWR | O_CLOEXEC)
      try check(descriptor >= 0, "open")
      defer { close(descriptor) }
      // Downwards, so that the file is only ever cut.
      for length in Self.some(of: bytes.count, sampled.map { $0 / 3 }, &random).reversed() {
        try check(ftruncate(descriptor, off_t(length)) == 0, "ftruncate")
        judge(isWholeLog: file.hasSuffix("-wal") && Self.endsWithAFrame(length), "\(file), cut to \(length) bytes")
      }
      try write(bytes, 0, descriptor)
      var bits = Self.some(of: 8 * bytes.count, sampled, &random)
      if sampled != nil { bits += (0..<min(bytes.count, Self.headerSize)).map { 8 * $0 + random.int(0..<8) } }
      for bit in bits {
        try write(Data([bytes[bit / 8] ^ 1 << UInt8(bit % 8)]), bit / 8, descriptor)
        judge(isWholeLog: false, "\(file), bit \(bit % 8) of byte \(bit / 8)")
        try write(bytes[bit / 8...bit / 8], bit / 8, descriptor)
      }
    }
    let left = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    if left != original { note("a first step of opening has written to the files, or has made others", "\(left.keys.sorted())") }
  }

  /// The size of the beginning of a file that is never left out.
  private static let headerSize = 200

  private static func some(of count: Int, _ wanted: Int?, _ random: inout SeededGenerator) -> [Int] {
    guard let wanted, wanted < count else { return Array(0..<count) }
    return (0..<wanted).map { _ in random.int(0..<count) }.sorted()
  }

  private static func endsWithAFrame(_ length: Int) -> Bool { length == 0 || length >= 32 && (length - 32) % (24 + 4_096) == 0 }

  private func write(_ bytes: Data, _ offset: Int, _ descriptor: Int32) throws {
    try check(bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count, "pwrite")
  }

  private func check(_ isDone: Bool, _ call: String) throws {
    if !isDone { throw Failure(call: call, errorNumber: errno) }
  }

  private func judge(isWholeLog: Bool, _ what: @autoclosure () -> String) {
    var found: Contents = [:]
    let backend = FormatFixture.backend(directory.file(name))
    do throws(RepositoryError) {
      let report = try backend.open(.init()) { found[$0.address] = text($0) }
      backend.abandon()
      if let known = history[report.commit], known != found { return note("two states of commit \(report.commit)", what()) }
      guard isPossible(found, at: report.commit) else { return note("a state that never was at commit \(report.commit)", what()) }
      history[report.commit] = found
      guard report.storeID == self.report.storeID else { return note("another store", what()) }
      if report.commit == self.report.commit {
        if report.tombstoneHorizon != self.report.tombstoneHorizon { note("other deletions", what()) }
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

  /// Returns whether a store may have had some contents at a commit: nothing later, and all that has not changed since.
  private func isPossible(_ found: Contents, at commit: Revision) -> Bool {
    found.values.allSatisfy { Self.revision($0) <= commit.number }
      && last.allSatisfy { Self.revision($0.value) > commit.number || found[$0.key] == $0.value }
  }

  private static func revision(_ text: String) -> UInt64 { text.split(separator: " ").first.flatMap { UInt64($0) } ?? .max }

  private func note(_ problem: String, _ what: String) { problems.append("\(what): \(problem)") }
}
