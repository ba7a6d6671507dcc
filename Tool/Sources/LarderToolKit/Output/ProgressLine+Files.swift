internal import Foundation
internal import Larder

extension ProgressLine {
  /// The size from which reading takes long enough to say so at once.
  private static let largeSize = 32 << 20

  /// Runs work that goes through all files of a store, or through another file, and says so meanwhile on a terminal: at once if they are
  /// large, otherwise when a count goes on for a while.
  /// - Parameter work: Calls its argument for each record, where it hears of them.
  static func during<Output>(
    _ verb: String, _ path: String, _ work: (_ step: () -> Void) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    let size = ["", "-journal", "-wal"].reduce(0) { $0 + Self.size(path + $1) }
    let name = TerminalText.escaped(URL(fileURLWithPath: path, isDirectory: false).lastPathComponent)
    let line = ProgressLine(size >= largeSize ? "\(verb) \(name), \(size >> 20) MiB" : "\(verb) \(name)")
    if size >= largeSize { line.show() }
    defer { line.finish() }
    return try work { line.advance() }
  }

  private static func size(_ path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }
}
