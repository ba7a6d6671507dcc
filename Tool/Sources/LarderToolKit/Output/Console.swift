// Output/ writes the output of commands and their errors, as text or as JSON.
// Invariant: answers go to the standard output, everything else to the standard error. Called by the commands.

package import Foundation
package import Larder
internal import Synchronization

/// Writer for the standard output and the standard error of the tool.
package final class Console: Sendable {
  /// Form of the output.
  package enum Format: Sendable {
    /// Text for people.
    case text
    /// JSON for programs.
    case json
  }

  /// Form of answers and errors.
  package let format: Format
  /// Whether the standard output is a terminal.
  package let isTerminal: Bool
  /// Columns of the terminal.
  ///
  /// `nil` if the standard output is not a terminal.
  package let width: Int?
  /// Whether the command has changed files.
  ///
  /// A later failure of the output then ends with exit code 3 instead of 2.
  package var hasChanged: Bool { changed.withLock { $0 } }
  private let changed = Mutex(false)
  private let pending = Mutex(Data())
  // Unbuffered, each record would be a system call.
  private static let bufferSize = 1 << 16

  /// Creates a console whose width is that of the standard output.
  package init(format: Format) {
    self.format = format
    isTerminal = isatty(STDOUT_FILENO) == 1
    width = isTerminal ? Self.columns : nil
  }

  /// Writes the lines or the JSON of an answer, and its failure, if it has one, to the standard error.
  /// - Parameter hasChanged: Whether the command has already changed files.
  package func write(_ answer: some Answer, hasChanged: Bool = false) throws(RepositoryError) {
    // Set before the first write, because that write may fail.
    if hasChanged { changed.withLock { $0 = true } }
    switch format {
    case .text: for line in answer.lines(width: width) { try write(line: line) }
    case .json: try write(line: answer.json.text)
    }
    // The JSON form has the failure as a member of the answer.
    guard let failure = answer.failure, format == .text else { return }
    // Both streams may lead to one terminal, where the failure belongs after the answer.
    try flush()
    report(failure)
  }

  /// Writes a line with its control characters escaped.
  package func write(line: String) throws(RepositoryError) { try write(bytes: Data((shown(line) + "\n").utf8)) }

  /// Escapes the characters of a line that would control a terminal.
  ///
  /// Names of files and texts of records come from other people.
  private func shown(_ line: String) -> String {
    switch format {
    case .text: TerminalText.escaped(line)
    case .json: TerminalText.escapedJSON(line)
    }
  }

  /// Writes one line of JSON byte for byte to a file or pipe, and with its control characters escaped to a terminal.
  package func write(storedLine bytes: Data) throws(RepositoryError) {
    // JSON allows control characters above U+007E in a text, and a store keeps a value as an app has written it.
    guard isTerminal else { return try write(bytes: bytes + Data("\n".utf8)) }
    try write(bytes: Data((TerminalText.escapedJSON(String(decoding: bytes, as: UTF8.self)) + "\n").utf8))
  }

  /// Writes bytes without escaping them.
  package func write(bytes: Data) throws(RepositoryError) {
    let isFull = pending.withLock { pending in
      pending.append(bytes)
      return pending.count >= Self.bufferSize
    }
    if isFull { try flush() }
  }

  /// Writes the buffer to the standard output.
  package func flush() throws(RepositoryError) {
    // The bytes leave the buffer first. After a failed write they must not be written twice.
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

  /// Writes an error to the standard error, with advice for its code.
  package func report(_ error: RepositoryError) {
    let report = ErrorReport(error)
    switch format {
    case .text: for line in report.lines(width: nil) { note(line) }
    case .json: note(report.json.text)
    }
  }

  /// Writes a line to the standard error with its control characters escaped.
  package func note(_ line: String) {
    // A closed standard error is ignored, because there is no other place to report it.
    do { try FileHandle.standardError.write(contentsOf: Data((shown(line) + "\n").utf8)) } catch {}
  }

  private static var columns: Int {
    var size = winsize()
    // Some terminals, such as serial lines, report no size. 80 columns are the traditional width.
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }
}
