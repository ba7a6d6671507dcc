import Foundation
import Synchronization

/// A process that kills the servers which are left when the process of the tests is gone.
final class ServerKeeper: Sendable {
  static let shared = ServerKeeper()
  private let pipe = Pipe()
  private let lock = Mutex(())

  private static let script = """
    trap '' HUP INT QUIT TERM
    pids=
    while read -r sign pid; do
      if [ "$sign" = + ]; then pids="$pids $pid"; else pids=$(printf '%s\\n' $pids | grep -vx "$pid"); fi
    done
    for pid in $pids; do
      if [ "$(cat "/proc/$pid/comm")" = larder-server ]; then kill -KILL "$pid"; fi
    done
    """

  private init() {
    pipe.keepToThisProcess()
    _ = try? ChildProcess("/bin/sh", ["-c", Self.script], input: pipe.fileHandleForReading.fileDescriptor)
  }

  func note(_ sign: String, _ pid: Int32) {
    lock.withLock { _ in try? pipe.fileHandleForWriting.write(contentsOf: Data("\(sign) \(pid)\n".utf8)) }
  }
}
