import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// A disk of a few MiB in memory, where this process may mount one.
struct SmallDisk {
  let path: String

  init?(mebibytes: Int = 1) async throws {
    path = FileManager.default.temporaryDirectory.appending(path: "larder-disk-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let result = try await Subprocess.run(
      .path("/bin/sh"), arguments: ["-c", "mount -t tmpfs -o size=\(mebibytes)m none \"$0\"", path], output: .discarded, error: .discarded)
    guard result.terminationStatus.isSuccess else {
      try FileManager.default.removeItem(atPath: path)
      return nil
    }
  }

  func remove() async throws {
    _ = try await Subprocess.run(.path("/bin/sh"), arguments: ["-c", "umount \"$0\"", path], output: .discarded, error: .discarded)
    try FileManager.default.removeItem(atPath: path)
  }
}
