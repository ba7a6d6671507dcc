internal import Foundation
internal import Larder

extension ProgressLine {
  /// Size in bytes from which the line is shown before the first record.
  private static let largeSize = 32 << 20

  /// Runs work that reads a store or another file, and shows a progress line on a terminal meanwhile.
  ///
  /// For files of 32 MiB or more the line appears at once, otherwise when a count has run for 250 ms.
  /// - Parameter work: Calls its argument once for each record, if it visits records.
  static func during<Output>(
    _ verb: String, _ path: String, _ work: (_ step: () -> Void) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    // A journal or log can be much larger than its main file, and is read too.
    let size = ["", "-journal", "-wal"].reduce(0) { $0 + Self.size(path + $1) }
    let name = TerminalText.escaped(URL(fileURLWithPath: path, isDirectory: false).lastPathComponent)
    let line = ProgressLine(size >= largeSize ? "\(verb) \(name), \(size >> 20) MiB" : "\(verb) \(name)")
    if size >= largeSize { line.show() }
    // The line is removed on errors too. The message would otherwise follow it on the same line.
    defer { line.finish() }
    return try work { line.advance() }
  }

  private static func size(_ path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }
}
