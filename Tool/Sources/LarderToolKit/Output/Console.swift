// Output/ writes answers and failures, for people or for programs.
// Invariant: answers go to the standard output and everything else to the standard error. Called by the commands.

package import Foundation
package import Larder
internal import Synchronization

/// The standard output and the standard error of the tool.
package final class Console: Sendable {
  /// The form of what is written.
  package enum Format: Sendable {
    /// Text for people.
    case text
    /// JSON for programs.
    case json
  }

  /// The form of answers and errors.
  package let format: Format
  /// Whether the standard output is a terminal.
  package let isTerminal: Bool
  /// The columns of the terminal; `nil` where there is none.
  package let width: Int?
  /// Whether the command has changed files: a failure of the output that follows is none of its work.
  package var hasChanged: Bool { changed.withLock { $0 } }
  private let changed = Mutex(false)
  private let pending = Mutex(Data())
  private static let bufferSize = 1 << 16

  /// Looks at the standard output.
  package init(format: Format) {
    self.format = format
    isTerminal = isatty(STDOUT_FILENO) == 1
    width = isTerminal ? Self.columns : nil
  }

  /// Writes the lines of a text, or the JSON, of an answer.
  /// - Parameter hasChanged: Whether the command has changed files before.
  package func write(_ answer: some Answer, hasChanged: Bool = false) throws(RepositoryError) {
    if hasChanged { changed.withLock { $0 = true } }
    switch format {
    case .text: for line in answer.lines(width: width) { try write(line: line) }
    case .json: try write(line: answer.json.text)
    }
    guard let failure = answer.failure, format == .text else { return }
    try flush()
    report(failure)
  }

  /// Writes a line, which steers no terminal.
  package func write(line: String) throws(RepositoryError) { try write(bytes: Data((shown(line) + "\n").utf8)) }

  /// Returns a line without characters that would steer a terminal: names of files and texts of records come from others.
  private func shown(_ line: String) -> String {
    switch format {
    case .text: TerminalText.escaped(line)
    case .json: TerminalText.escapedJSON(line)
    }
  }

  /// Writes bytes as they are.
  package func write(bytes: Data) throws(RepositoryError) {
    let isFull = pending.withLock { pending in
      pending.append(bytes)
      return pending.count >= Self.bufferSize
    }
    if isFull { try flush() }
  }

  /// Hands everything to the system.
  package func flush() throws(RepositoryError) {
    let bytes = pending.withLock { pending in
      defer { pending = Data() }
      return pending
    }
    do {
      try FileHandle.standardOutput.write(contentsOf: bytes)
    } catch {
      throw RepositoryError(
        .inputOutput,
        hasChanged
          ? "the files are written, and the answer is not: the standard output is closed or full"
          : "the standard output cannot be written")
    }
  }

  /// Writes a failure to the standard error, with what to do about it.
  package func report(_ error: RepositoryError) {
    let report = ErrorReport(error)
    switch format {
    case .text: for line in report.lines(width: nil) { note(line) }
    case .json: note(report.json.text)
    }
  }

  /// Writes a line to the standard error, which steers no terminal.
  package func note(_ line: String) {
    // A standard error that is closed is nobody's: there is no place left to say so.
    do { try FileHandle.standardError.write(contentsOf: Data((shown(line) + "\n").utf8)) } catch {}
  }

  private static var columns: Int {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }
}
