import Foundation

/// Writes text to standard output.
func writeText(_ text: String) throws { try writeBytes(Data(text.utf8)) }

/// Writes bytes to standard output.
func writeBytes(_ data: Data) throws {
  do { try FileHandle.standardOutput.write(contentsOf: data) } catch { throw Failure(.noOutput, "the output cannot be written") }
}

/// Writes a value to standard output as one line of JSON.
func writeJSON(_ value: some Encodable) throws {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  encoder.keyEncodingStrategy = .convertToSnakeCase
  try writeBytes(try encoder.encode(value) + Data("\n".utf8))
}

/// Writes a line about this run to standard error.
func note(_ message: String) {
  writeToStandardError("weather-spots: \(message)\n")
}

func writeToStandardError(_ text: String) {
  // There is nowhere left to say that standard error cannot be written.
  do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
}

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
    let bar = String(repeating: "#", count: percent * 30 / 100).padding(toLength: 30, withPad: ".", startingAt: 0)
    writeToStandardError("\r\(title) [\(bar)] \(percent) %")
  }

  /// Removes the bar, so that what follows starts on a clean line.
  mutating func finish() {
    guard shown >= 0 else { return }
    shown = -1
    writeToStandardError("\r\u{1B}[K")
  }
}
