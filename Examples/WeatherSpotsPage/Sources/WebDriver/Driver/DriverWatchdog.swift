import Foundation

/// A process that ends chromedriver with its browsers and removes their directory, once the process that made it is gone, however that
/// ended: it waits for the end of a pipe that nobody else holds.
final class DriverWatchdog: Sendable {
  private let process: Process
  private let pipe: Pipe
  private let ended: AsyncStream<Never>

  // chromedriver leads a group of processes, which its browsers are in; its number is in a file before it does anything. The processes that
  // wait for a browser's crash leave the group, and have the directory among their arguments. One that has ended stays in the list (Z)
  // until somebody has asked about it, which may never be.
  private static let script = """
    trap '' HUP INT QUIT TERM
    while read -r line; do :; done
    group=none
    [ -s "$1/group" ] && read -r group <"$1/group" && kill -KILL "-$group"
    left() {
      ps -A -o pid= -o pgid= -o stat= -o args= | while read -r pid leader state words; do
        case $state in Z*) continue ;; esac
        case $words in *"$1/"*) leader=$group ;; esac
        [ "$leader" = "$group" ] && echo "$pid"
      done
    }
    tries=0
    while [ "$tries" -lt 100 ]; do
      pids=$(left "$1")
      [ "$pids" ] || break
      kill -KILL $pids
      sleep 0.05
      tries=$((tries + 1))
    done
    cd /
    rm -rf "$1"
    """

  init(directory: String) throws {
    let (process, pipe) = (Process(), Pipe())
    (self.process, self.pipe) = (process, pipe)
    // Open here and in no process that is started later, which would hold it open.
    for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] { _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) }
    let (ended, continuation) = AsyncStream.makeStream(of: Never.self)
    self.ended = ended
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", Self.script, "webdriver-watchdog", directory]
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    (process.standardInput, process.standardOutput) = (pipe, FileHandle.nullDevice)
    process.standardError = FileHandle.nullDevice
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
  }

  // A process that runs keeps itself, and its pipe, when it is forgotten here.
  deinit { do { try pipe.fileHandleForWriting.close() } catch { print("a watchdog's pipe: \(error)") } }

  /// Lets it do its work now, and returns when that is done.
  func end() async throws {
    try pipe.fileHandleForWriting.close()
    for await _ in ended {}
  }
}
