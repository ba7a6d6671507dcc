import Foundation
import Synchronization
import WeatherSpotsKit

/// Width and character set of the text that this process writes.
enum Output {
  /// Whether only ASCII is written, as `--plain` requests.
  static let isPlain = Mutex(false)

  /// Returns the maximum width of a line, or `nil` if lines may have any length, as in a pipe.
  ///
  /// `COLUMNS` wins over the width of the terminal.
  static func columns(_ descriptor: Int32 = STDOUT_FILENO) -> Int? {
    let asked = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }.flatMap { (1...10_000).contains($0) ? $0 : nil }
    let measured = isatty(descriptor) == 1 ? size(descriptor)?.ws_col : nil
    // Some terminals report a width of 0. Below 20 columns no table is readable.
    return (asked ?? measured.map(Int.init).flatMap { $0 > 0 ? $0 : nil }).map { max(20, $0) }
  }

  /// Returns the size of the terminal behind a file descriptor, or `nil` if there is none.
  static func size(_ descriptor: Int32) -> winsize? {
    var size = winsize()
    return ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
  }

  /// Returns printable lines, each cut to the width of the terminal if there is one.
  static func fitted(_ text: String) -> String {
    guard let columns = columns() else { return self.text(text) }
    let mark = isPlain.withLock { $0 } ? "..." : "…"
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { self.text(String($0)).fitted(toColumns: columns, mark: mark) }.joined(separator: "\n")
  }

  /// Returns text without control characters, which could move a cursor or reverse the direction of text.
  static func text(_ text: String) -> String {
    let shown = text.withoutControls
    return isPlain.withLock { $0 } ? shown.ascii : shown
  }
}

extension String {
  /// The text quoted as one word of a shell.
  var shellQuoted: String {
    // Plain words stay unquoted, so that a suggested command looks as a person would type it.
    if wholeMatch(of: #/[A-Za-z0-9_.,:/=@+-]+/#) != nil { return self }
    return "'\(replacing("'", with: #"'\''"#))'"
  }
}

/// Writes text to standard output.
public func writeText(_ text: String) throws { try writeBytes(Data(Output.text(text).utf8)) }

/// Writes lines of a table to standard output, each cut to the width of the terminal if there is one.
func writeTable(_ text: String) throws { try writeBytes(Data(Output.fitted(text).utf8)) }

/// Writes bytes to standard output.
func writeBytes(_ data: Data) throws {
  do { try FileHandle.standardOutput.write(contentsOf: data) } catch { throw Failure(.noOutput, "the output cannot be written") }
}

/// Writes a value to standard output as one line of JSON.
public func writeJSON(_ value: some Encodable) throws { try writeBytes(try ReportJSON.data(value)) }

/// Writes a line about this run to standard error.
public func note(_ message: String) { writeToStandardError("weather-spots: \(Output.text(message))\n") }

func writeToStandardError(_ text: String) {
  // A failure to write to standard error cannot be reported anywhere.
  do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
}

/// Returns a number with its noun, such as "2 clusters".
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// Progress bar on standard error, drawn only on a terminal and only until the work is done.
struct ProgressBar {
  private let title: String
  private let isShown = isatty(STDERR_FILENO) == 1
  private var shown = -1

  init(_ title: String) { self.title = title }

  /// Draws the completed part of the work, from 0 to 1.
  mutating func show(_ part: Double) {
    let percent = Int(part * 100)
    // A redraw costs a system call, and most of a million rows do not change the percentage.
    guard isShown, percent != shown, part < 1 else { return }
    shown = percent
    // The last column stays free, because some terminals wrap when it is filled.
    let room = min(30, (Output.columns(STDERR_FILENO) ?? 80) - title.count - " [] 100 %".count - 1)
    let text = room < 5 ? "\(percent) %" : "\(title) [\(bar(percent, room))] \(percent) %"
    writeToStandardError("\r\(text)")
  }

  private func bar(_ percent: Int, _ columns: Int) -> String {
    String(repeating: "#", count: percent * columns / 100).padding(toLength: columns, withPad: ".", startingAt: 0)
  }

  /// Removes the bar, so that the next text starts on a clean line.
  mutating func finish() {
    guard shown >= 0 else { return }
    shown = -1
    writeToStandardError("\r\u{1B}[K")
  }
}
