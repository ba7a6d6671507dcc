import Foundation
import Synchronization

/// A date that a test sets.
final class ManualDate: Sendable {
  private let date: Mutex<Date>
  init(_ date: Date) { self.date = Mutex(date) }
  var now: Date {
    get { date.withLock { $0 } }
    set { date.withLock { $0 = newValue } }
  }
}
