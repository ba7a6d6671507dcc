import Foundation

/// A warning as it is shown, always with the same keys.
public struct AlertReport: Encodable, Sendable {
  let id: String
  let summary: String
  @NullEncoded var areaName: String?
  let source: String
  let severity: String
  @NullEncoded var urgency: String?
  @NullEncoded var certainty: String?
  let issued: Date
  let effective: Date
  let expires: Date
  @NullEncoded var onset: Date?
  @NullEncoded var end: Date?
  @NullEncoded var details: URL?

  /// Makes the report of a warning.
  public init(_ alert: WeatherAlert) {
    id = alert.id
    summary = alert.summary
    areaName = alert.areaName
    source = alert.source
    severity = alert.severity
    urgency = alert.urgency
    certainty = alert.certainty
    issued = alert.issued
    effective = alert.effective
    expires = alert.expires
    onset = alert.onset
    end = alert.end
    details = alert.details
  }
}
