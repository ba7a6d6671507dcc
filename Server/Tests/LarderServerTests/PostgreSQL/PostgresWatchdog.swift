import Foundation

/// A process that ends the nodes in a directory and removes it, once the process that made it is gone, however that ended: it waits for the end of
/// a pipe that nobody else holds.
final class PostgresWatchdog: Sendable {
  private let process: Process
  private let pipe: Pipe

  // The nodes are folders of the directory. A number in a left-over `postmaster.pid` may be another process's by now, which runs elsewhere.
  private static let script = """
    trap '' HUP INT QUIT TERM
    while read -r line; do :; done
    for file in "$1"/*/postmaster.pid; do
      [ -f "$file" ] || continue
      read -r pid <"$file"
      if [ -d /proc/self ] && [ "$(readlink "/proc/$pid/cwd")" != "${file%/postmaster.pid}" ]; then continue; fi
      kill -QUIT "$pid" || continue
      tries=0
      while kill -0 "$pid" && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
      done
      kill -KILL "$pid"
    done
    cd /
    rm -rf "$1"
    """

  init(directory: String) throws {
    (process, pipe) = (Process(), Pipe())
    let command = PostgresPrograms.command("/bin/sh", ["-c", Self.script, "larder-watchdog", directory])
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    (process.standardInput, process.standardOutput) = (pipe, FileHandle.nullDevice)
    process.standardError = FileHandle.nullDevice
    try process.run()
    pipe.keepToThisProcess()
  }

  /// Lets it do its work now, and blocks until that is done.
  func end() {
    try? pipe.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
