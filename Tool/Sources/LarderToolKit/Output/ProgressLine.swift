internal import Foundation
internal import Synchronization

/// Progress line on the standard error that shows a label and a count.
///
/// Shows nothing if the standard error is not a terminal.
package final class ProgressLine: Sendable {
  private struct State {
    var count = 0
    var shown: ContinuousClock.Instant
    var isShown = false
  }

  private let label: String
  private let isActive: Bool
  private let state = Mutex(State(shown: .now))
  private static let interval = Duration.milliseconds(250)
  /// Number of steps between two readings of the clock, which would cost more than a step.
  private static let stride = 256

  /// Creates a line that appears once the work has run for 250 ms.
  /// - Parameter isWanted: Whether the line is shown at all. Pass false if the records themselves go to the same terminal.
  package init(_ label: String, isWanted: Bool = true) {
    self.label = label
    isActive = isWanted && isatty(STDERR_FILENO) == 1
  }

  /// Shows the label without a count.
  package func show() {
    guard isActive else { return }
    state.withLock { $0.isShown = true }
    write("\r\(label)")
  }

  /// Adds one to the count, and shows it at most every 250 ms.
  package func advance() {
    guard isActive else { return }
    let text = state.withLock { state -> String? in
      state.count += 1
      guard state.count % Self.stride == 0, ContinuousClock.now - state.shown >= Self.interval else { return nil }
      (state.shown, state.isShown) = (.now, true)
      return "\r\(label): \(state.count)"
    }
    // Written outside the lock, because a terminal can block the writer.
    if let text { write(text) }
  }

  /// Removes the line from the terminal.
  package func finish() {
    guard isActive, state.withLock({ $0.isShown }) else { return }
    // The escape sequence erases to the end of the line. Spaces would wrap in a narrow terminal.
    write("\r\u{1B}[K")
  }

  private func write(_ text: String) {
    // A failure to show progress must not fail the command.
    do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
  }
}
