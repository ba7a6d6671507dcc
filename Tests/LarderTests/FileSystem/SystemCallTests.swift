import Foundation
import Larder
import Testing

@Suite("System calls that stop half-way")
struct SystemCallTests {
  /// A file in memory that obeys a script of outcomes: how many bytes to take, or which error to give.
  private final class ScriptedFile {
    var contents: [UInt8]
    var script: [CallOutcome]
    var calls: [(offset: Int, count: Int)] = []

    init(_ contents: [UInt8] = [], script: [CallOutcome]) {
      self.contents = contents
      self.script = script
    }

    func write(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> CallOutcome {
      calls.append((offset, bytes.count))
      let outcome = script.isEmpty ? .done(bytes.count) : script.removeFirst()
      guard case .done(let count) = outcome else { return outcome }
      if contents.count < offset + count { contents += [UInt8](repeating: 0, count: offset + count - contents.count) }
      for index in 0..<min(count, bytes.count) { contents[offset + index] = bytes[index] }
      return outcome
    }

    func read(_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) -> CallOutcome {
      calls.append((offset, buffer.count))
      let left = max(0, contents.count - offset)
      let outcome = script.isEmpty ? .done(min(left, buffer.count)) : script.removeFirst()
      guard case .done(let count) = outcome else { return outcome }
      for index in 0..<min(count, left, buffer.count) { buffer[index] = contents[offset + index] }
      return outcome
    }
  }

  private let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

  @Test func aShortWriteIsContinuedWhereItStopped() {
    let file = ScriptedFile(script: [.done(1), .done(500), .done(3)])
    let failure = bytes.withUnsafeBytes { SystemCall.writeAll($0, at: 10, with: file.write) }
    #expect(failure == nil)
    #expect(Array(file.contents[10...]) == bytes)
    #expect(file.calls.map(\.offset) == [10, 11, 511, 514])
  }

  @Test func anInterruptedWriteIsRepeated() {
    let file = ScriptedFile(script: [.failed(EINTR), .done(400), .failed(EINTR), .failed(EINTR)])
    let failure = bytes.withUnsafeBytes { SystemCall.writeAll($0, at: 0, with: file.write) }
    #expect(failure == nil)
    #expect(file.contents == bytes)
  }

  @Test func aWriteThatTakesNothingIsAFailureAndNotALoop() {
    let file = ScriptedFile(script: [.done(400), .done(0)])
    #expect(bytes.withUnsafeBytes { SystemCall.writeAll($0, at: 0, with: file.write) } == EIO)
    #expect(file.calls.count == 2)
  }

  @Test func aWriteThatFailsAfterAPrefixReportsItsError() {
    let file = ScriptedFile(script: [.done(400), .failed(ENOSPC)])
    #expect(bytes.withUnsafeBytes { SystemCall.writeAll($0, at: 0, with: file.write) } == ENOSPC)
    #expect(file.contents == Array(bytes.prefix(400)))
  }

  @Test func nothingToWriteMakesNoCall() {
    let file = ScriptedFile(script: [])
    #expect([UInt8]().withUnsafeBytes { SystemCall.writeAll($0, at: 0, with: file.write) } == nil)
    #expect(file.calls.isEmpty)
  }

  @Test func noCallIsAskedForMoreThanTheSystemsMove() {
    // The pages of this mapping are never touched: the script only counts.
    let count = 5 << 29
    let memory = mmap(nil, count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    defer { munmap(memory, count) }
    var sizes: [Int] = []
    let failure = SystemCall.writeAll(UnsafeRawBufferPointer(start: memory, count: count), at: 0) { piece, _ in
      sizes.append(piece.count)
      return .done(piece.count)
    }
    #expect(failure == nil)
    #expect(sizes == [1 << 30, 1 << 30, 1 << 29])
  }

  @Test func aShortOrInterruptedReadIsContinued() {
    let file = ScriptedFile(bytes, script: [.done(100), .failed(EINTR), .done(1)])
    var buffer = [UInt8](repeating: 0, count: 900)
    let outcome = buffer.withUnsafeMutableBytes { SystemCall.readAll(into: $0, at: 50, with: file.read) }
    #expect(outcome == .done(900))
    #expect(buffer == Array(bytes[50..<950]))
  }

  @Test func aReadEndsWithTheFile() {
    let file = ScriptedFile(bytes, script: [])
    var buffer = [UInt8](repeating: 0, count: 900)
    #expect(buffer.withUnsafeMutableBytes { SystemCall.readAll(into: $0, at: 990, with: file.read) } == .done(10))
  }

  @Test func aReadThatFailsReportsItsErrorAndNoBytes() {
    let file = ScriptedFile(bytes, script: [.done(100), .failed(EIO)])
    var buffer = [UInt8](repeating: 0, count: 900)
    #expect(buffer.withUnsafeMutableBytes { SystemCall.readAll(into: $0, at: 0, with: file.read) } == .failed(EIO))
  }

  @Test func anInterruptedCallIsRepeatedAndAnyOtherFailureIsNot() {
    var numbers: [Int32] = [EINTR, EINTR, EIO]
    let outcome = SystemCall.uninterrupted {
      errno = numbers.removeFirst()
      return -1
    }
    #expect(outcome == .failed(EIO))
    #expect(numbers.isEmpty)
  }

  @Test(arguments: [EIO, ENOSPC, EINVAL, EACCES, EPERM, EBADF])
  func aFailedFlushIsNeverReplacedByAWeakerOne(number: Int32) {
    var weakerCalls = 0
    let outcome = SystemCall.flush(
      { .failed(number) },
      unknown: {
        weakerCalls += 1; return .done(0)
      })
    #expect(outcome == .failed(number))
    #expect(weakerCalls == 0)
  }

  @Test func aFlushThatTheFileSystemDoesNotHaveIsReplacedByTheWeakerOne() {
    // A file system without the call answers with ENOTSUP or, as some over a network, with ENOTTY.
    for number in [ENOTSUP, EOPNOTSUPP, ENOTTY] {
      #expect(SystemCall.isUnknownSync(number))
      #expect(SystemCall.flush({ .failed(number) }, unknown: { .done(0) }) == .done(0))
      #expect(SystemCall.flush({ .failed(number) }, unknown: { .failed(EIO) }) == .failed(EIO))
    }
    #expect(SystemCall.flush({ .done(0) }, unknown: { .failed(EIO) }) == .done(0))
  }
}
