import Foundation
import Larder
import TestSupport

/// The files that a kill and the opening after it have left, and a second recovery of them.
struct Remains {
  /// The problems that were found, in words.
  private(set) var problems: [String] = []

  /// Looks at the files of a store that is open, and opens a copy of them: recovering again must find the same, and nothing to do.
  ///
  /// - Parameter file: The name of the main file.
  init(of store: Store, file: String, in directory: TemporaryDirectory, kind: DiskBackend) async throws {
    let usual = ["", "-lock"] + (kind == .json ? ["-journal", "-index"] : ["-wal", "-shm"])
    for name in try directory.names {
      let isExpected = usual.contains { name == file + $0 } || name.hasPrefix(file + "-quarantine-") && !name.hasSuffix("-tmp")
      if !isExpected { problems.append("\(name) stays") }
      let mode = try FileManager.default.attributesOfItem(atPath: directory.pathOfFile(name))[.posixPermissions] as? Int
      if mode != 0o600 { problems.append("the mode of \(name) is \(String(mode ?? 0, radix: 8))") }
    }
    let copy = try directory.copy(except: file + "-lock")
    let again = try await Store.open(kind.backend(copy.file(file)))
    let (report, first) = (again.openReport, store.openReport)
    if !report.isClean || report.isNew { problems.append("the second recovery is not clean: \(report)") }
    if report.commit != first.commit { problems.append("commit \(first.commit) became \(report.commit)") }
    let sound = await again.verify()
    if !sound.isSound { problems.append("the second recovery is not sound: \(sound.problems)") }
    try await again.close()
  }
}
