internal import Foundation
internal import Synchronization

/// A line on the standard error that counts, where that is a terminal, and nothing anywhere else.
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
  /// The number of steps between two looks at the clock.
  private static let stride = 256

  /// Makes a count that is shown behind a label once the work takes a while.
  /// - Parameter isWanted: Whether to show it at all: not beside output on the same terminal.
  package init(_ label: String, isWanted: Bool = true) {
    self.label = label
    isActive = isWanted && isatty(STDERR_FILENO) == 1
  }

  /// Shows the label alone.
  package func show() {
    guard isActive else { return }
    state.withLock { $0.isShown = true }
    write("\r\(label)")
  }

  /// Counts one more.
  package func advance() {
    guard isActive else { return }
    let text = state.withLock { state -> String? in
      state.count += 1
      guard state.count % Self.stride == 0, ContinuousClock.now - state.shown >= Self.interval else { return nil }
      (state.shown, state.isShown) = (.now, true)
      return "\r\(label): \(state.count)"
    }
    if let text { write(text) }
  }

  /// Takes the line away.
  package func finish() {
    guard isActive, state.withLock({ $0.isShown }) else { return }
    write("\r\u{1B}[K")
  }

  private func write(_ text: String) {
    // Progress that cannot be shown is nobody's loss.
    do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
  }
}
