import Foundation
import Synchronization
import WeatherSpotsKit

/// The form of the text that this run writes.
enum Output {
  /// Whether only ASCII is written, as `--plain` wants.
  static let isPlain = Mutex(false)

  /// Returns how wide a line may be: as `COLUMNS` says, or else the terminal that a file descriptor is; `nil` where there is no end to
  /// it, as in a pipe.
  static func columns(_ descriptor: Int32 = STDOUT_FILENO) -> Int? {
    let asked = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }.flatMap { (1...10_000).contains($0) ? $0 : nil }
    let measured = isatty(descriptor) == 1 ? size(descriptor)?.ws_col : nil
    return (asked ?? measured.map(Int.init).flatMap { $0 > 0 ? $0 : nil }).map { max(20, $0) }
  }

  /// Returns the size of the terminal that a file descriptor is; `nil` if it is none.
  static func size(_ descriptor: Int32) -> winsize? {
    var size = winsize()
    return ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
  }

  /// Lines as they may be written, each cut to the width of what shows them, where that has one.
  static func fitted(_ text: String) -> String {
    guard let columns = columns() else { return self.text(text) }
    let mark = isPlain.withLock { $0 } ? "..." : "…"
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { self.text(String($0)).fitted(toColumns: columns, mark: mark) }.joined(separator: "\n")
  }

  /// Text as it may be written: without what could move a terminal's cursor or turn the direction of what follows.
  static func text(_ text: String) -> String {
    let shown = text.withoutControls
    return isPlain.withLock { $0 } ? shown.ascii : shown
  }
}

extension String {
  /// The text as one word of a shell.
  var shellQuoted: String {
    if wholeMatch(of: #/[A-Za-z0-9_.,:/=@+-]+/#) != nil { return self }
    return "'\(replacing("'", with: #"'\''"#))'"
  }
}

/// Writes text to standard output.
public func writeText(_ text: String) throws { try writeBytes(Data(Output.text(text).utf8)) }

/// Writes lines of a table to standard output, each cut to the width of what shows them, where that has one.
func writeTable(_ text: String) throws { try writeBytes(Data(Output.fitted(text).utf8)) }

/// Writes bytes to standard output.
func writeBytes(_ data: Data) throws {
  do { try FileHandle.standardOutput.write(contentsOf: data) } catch { throw Failure(.noOutput, "the output cannot be written") }
}

/// Writes a value to standard output as one line of JSON.
public func writeJSON(_ value: some Encodable) throws { try writeBytes(try ReportJSON.data(value)) }

/// Writes a line about this run to standard error.
public func note(_ message: String) {
  writeToStandardError("weather-spots: \(Output.text(message))\n")
}

func writeToStandardError(_ text: String) {
  // There is nowhere left to say that standard error cannot be written.
  do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
}

/// Returns a number with its noun, such as 2 clusters.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// A bar on standard error, drawn only on a terminal and only while there is something to wait for.
struct ProgressBar {
  private let title: String
  private let isShown = isatty(STDERR_FILENO) == 1
  private var shown = -1

  init(_ title: String) { self.title = title }

  /// Shows how much is done, from 0 to 1.
  mutating func show(_ part: Double) {
    let percent = Int(part * 100)
    guard isShown, percent != shown, part < 1 else { return }
    shown = percent
    // The last column stays free, or some terminals begin a new line.
    let room = min(30, (Output.columns(STDERR_FILENO) ?? 80) - title.count - " [] 100 %".count - 1)
    let text = room < 5 ? "\(percent) %" : "\(title) [\(bar(percent, room))] \(percent) %"
    writeToStandardError("\r\(text)")
  }

  private func bar(_ percent: Int, _ columns: Int) -> String {
    String(repeating: "#", count: percent * columns / 100).padding(toLength: columns, withPad: ".", startingAt: 0)
  }

  /// Removes the bar, so that what follows starts on a clean line.
  mutating func finish() {
    guard shown >= 0 else { return }
    shown = -1
    writeToStandardError("\r\u{1B}[K")
  }
}
