import Foundation

/// A revision of a warning: a digest of all its fields, so that a changed text is a new revision and an unchanged one is not.
public struct AlertRevision: RawRepresentable, Hashable, Codable, Sendable {
  /// 32 hexadecimal digits.
  public let rawValue: String

  /// Makes the revision of a warning.
  public init(_ alert: WeatherAlert) {
    var hash = FieldHash()
    for text in [alert.id, alert.summary, alert.areaName, alert.source, alert.severity, alert.urgency, alert.certainty] { hash.add(text) }
    for date in [alert.issued, alert.effective, alert.expires, alert.onset, alert.end] {
      hash.add(date.map { String(Int64(($0.timeIntervalSince1970 * 1000).rounded())) })
    }
    hash.add(alert.details?.absoluteString)
    rawValue = String(hash.hexadecimal.prefix(32))
  }

  /// Reads the digits.
  public init(rawValue: String) { self.rawValue = rawValue }
}

/// The key of a notice: a digest of the watcher, the warning and its revision.
///
/// It is the key of the queue, so that there is one notice of each, and goes with the notice, so that a receiver that gets it twice can
/// know.
public struct NoticeKey: RawRepresentable, Hashable, Codable, Sendable {
  /// 64 hexadecimal digits.
  public let rawValue: String

  /// Makes the key of a notice.
  public init(watcher: Watcher.ID, alert: WeatherAlert.ID, revision: AlertRevision) {
    var hash = FieldHash()
    for text in [watcher, alert, revision.rawValue] { hash.add(text) }
    rawValue = hash.hexadecimal
  }

  /// Reads the digits.
  public init(rawValue: String) { self.rawValue = rawValue }
}

/// A digest of fields that cannot run into each other.
struct FieldHash {
  private var digest = SHA256Digest()

  mutating func add(_ text: String?) {
    // The length first, and a mark for what is missing.
    digest.add(Data((text.map { String($0.utf8.count) } ?? "-").utf8 + [0x3A]))
    if let text { digest.add(Data(text.utf8)) }
  }

  /// 64 hexadecimal digits.
  var hexadecimal: String { digest.text }
}
