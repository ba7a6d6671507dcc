public import Foundation
import Synchronization

extension TimeZone {
  /// Returns the time zone of an IANA name such as Europe/Paris, or `nil` if this system has no zone of that name.
  public static func named(_ name: String) -> TimeZone? {
    if let zone = known.withLock({ $0[name] }) { return zone }
    // The system looks up zones as files. A name such as "../../etc/passwd" must not leave the directory of zones.
    let isName =
      !name.isEmpty && name.utf8.count <= 64 && !name.contains("..") && !name.hasPrefix("/") && name.hasOnlyAlphanumerics(and: "/_-+")
    guard isName else { return nil }
    let zone = TimeZone(identifier: name)
    // Foundation accepts a name in any case, and unknown names are kept, too. So the number of names needs a limit.
    known.withLock { names in
      if names.count >= 1000 { names = [:] }
      names.updateValue(zone, forKey: name)
    }
    return zone
  }

  /// Zones that were looked up, because a lookup costs more than the rest of reading a row of a CSV file.
  private static let known = Mutex<[String: TimeZone?]>([:])
}
