internal import Foundation

/// The counts of random tests: a usual number, or with `LARDER_TORTURE` set (`make torture`) the full one.
package enum Torture {
  /// Whether the full counts were asked for.
  package static let isOn = ProcessInfo.processInfo.environment["LARDER_TORTURE"] != nil

  /// Returns the number that this run takes.
  package static func count(_ usual: Int, full: Int) -> Int { isOn ? full : usual }
}
