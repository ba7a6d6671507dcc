import Testing

@testable import LarderToolKit

@Suite struct LockHoldersTests {
  private static let files: Set<FileNumber> = [FileNumber(device: 0xFE00, inode: 42), FileNumber(device: 0xFE00, inode: 43)]

  /// Returns the holders in a list whose lines have so many of the words of `/proc/locks`.
  private func holders(_ locks: String...) -> LockHolders {
    let lines = locks.enumerated().map { "\($0 + 1): \($1)" }
    return LockHolders(list: lines.joined(separator: "\n") + "\n", of: Self.files, named: nil)
  }

  @Test func `a process is named once, also for its lock that has no process`() {
    let found = holders(
      "OFDLCK ADVISORY  WRITE -1 fe:00:42 4611686018427387904 4611686018427387904", "POSIX  ADVISORY  READ 9512 fe:00:42 128 128",
      "FLOCK  ADVISORY  WRITE 9512 fe:00:43 0 EOF")
    #expect(found.processes == [9512] && !found.hasUnnamed && found.text == "held by process 9512")
  }

  @Test func `several processes are named in order`() {
    let found = holders("FLOCK  ADVISORY  READ 20 fe:00:43 0 EOF", "FLOCK  ADVISORY  READ 9 fe:00:43 0 EOF")
    #expect(found.processes == [9, 20] && found.text == "held by process 9, 20")
  }

  @Test func `a lock without any process is held all the same`() {
    for process in [-1, 0] {
      let found = holders("OFDLCK ADVISORY  WRITE \(process) fe:00:42 0 0")
      #expect(found.processes == [] && found.hasUnnamed && found.text.hasPrefix("held by a process that this system does not name"))
    }
    let both = holders("FLOCK  ADVISORY  READ 0 fe:00:43 0 EOF", "FLOCK  ADVISORY  READ 9 fe:00:43 0 EOF")
    #expect(both.processes == [9] && both.text == "held by process 9, and by one of another container")
  }

  @Test func `other files and processes that wait count as nobody`() {
    let found = holders("FLOCK  ADVISORY  WRITE 7 fe:00:44 0 EOF", "-> FLOCK  ADVISORY  WRITE 8 fe:00:43 0 EOF", "")
    #expect(found.processes == [] && !found.hasUnnamed && found.text == "nobody")
  }

  @Test func `without a list only the lock file is known`() {
    #expect(LockHolders(list: nil, of: Self.files, named: nil).text == "nobody")
    let found = LockHolders(list: nil, of: Self.files, named: 5)
    #expect(found.processes == nil && found.text.contains("names process 5"))
  }
}
