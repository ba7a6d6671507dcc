public import Foundation

extension TimeZone {
  /// Returns the zone of an IANA name such as Europe/Paris; `nil` when this system does not know the name.
  public static func named(_ name: String) -> TimeZone? {
    var zones = ZoneNames()
    return zones.contains(name) ? TimeZone(identifier: name) : nil
  }
}
