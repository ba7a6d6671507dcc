import Foundation

/// A revision of a weather warning: a digest of all its fields, which changes when any of them does.
public struct AlertRevision: RawRepresentable, Hashable, Codable, Sendable {
  /// 32 hexadecimal digits.
  public let rawValue: String

  /// Computes the revision of a warning.
  public init(_ alert: WeatherAlert) {
    var hash = FieldHash()
    for text in [alert.id, alert.summary, alert.areaName, alert.source, alert.severity, alert.urgency, alert.certainty] { hash.add(text) }
    for date in [alert.issued, alert.effective, alert.expires, alert.onset, alert.end] {
      // Milliseconds, so that rounding errors in the last bits of a `Date` make no new revision.
      hash.add(date.map { String(Int64(($0.timeIntervalSince1970 * 1000).rounded())) })
    }
    hash.add(alert.details?.absoluteString)
    // 128 bits are enough to tell the revisions of one warning apart.
    rawValue = String(hash.hexadecimal.prefix(32))
  }

  /// Makes a revision from its stored digits.
  public init(rawValue: String) { self.rawValue = rawValue }
}

/// The idempotency key of a notice: a digest of the watcher, the warning and its revision.
///
/// The queue stores at most one notice of each key. The key is sent with the notice, so that a receiver can recognise a repeat.
public struct NoticeKey: RawRepresentable, Hashable, Codable, Sendable {
  /// 64 hexadecimal digits.
  public let rawValue: String

  /// Computes the key of a notice.
  public init(watcher: Watcher.ID, alert: WeatherAlert.ID, revision: AlertRevision) {
    var hash = FieldHash()
    for text in [watcher, alert, revision.rawValue] { hash.add(text) }
    rawValue = hash.hexadecimal
  }

  /// Makes a key from its stored digits.
  public init(rawValue: String) { self.rawValue = rawValue }
}

/// A SHA-256 digest of a list of optional texts, in which different lists never have the same input.
struct FieldHash {
  private var digest = SHA256Digest()

  mutating func add(_ text: String?) {
    // The length comes first, or "ab", "c" and "a", "bc" would be the same input. "-" marks `nil`, which differs from an empty text.
    digest.add(Data((text.map { String($0.utf8.count) } ?? "-").utf8 + [0x3A]))
    if let text { digest.add(Data(text.utf8)) }
  }

  /// 64 hexadecimal digits.
  var hexadecimal: String { digest.text }
}
