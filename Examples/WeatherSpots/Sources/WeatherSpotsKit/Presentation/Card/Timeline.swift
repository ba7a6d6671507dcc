public import Foundation

/// The time axis of a chart: an interval divided into columns of whole hours.
public struct Timeline: Hashable, Sendable {
  /// Interval that the columns cover.
  public let interval: DateInterval
  /// Time zone of the labels.
  public let zone: TimeZone
  /// Number of hours in a column.
  public let hoursPerColumn: Int
  /// Number of columns, at most the limit given.
  public let columns: Int

  /// Divides an interval into as many columns as fit into `limit`, each of at least one hour.
  public init(_ interval: DateInterval, in zone: TimeZone, columns limit: Int) {
    self.interval = interval
    self.zone = zone
    // A day that the zone skipped has no hours. It gets one empty column, so that the chart has a place for its bars.
    let hours = max(1, Int((interval.duration / 3600).rounded(.up)))
    // The limit may be zero or negative on a narrow terminal.
    hoursPerColumn = max(1, (hours + max(1, limit) - 1) / max(1, limit))
    columns = (hours + hoursPerColumn - 1) / hoursPerColumn
  }

  /// Returns the mean of the values in each column, `nil` for a column without values.
  ///
  /// Values at instants outside the interval are left out.
  public func means(of values: [Double?], at instants: [Date]) -> [Double?] {
    var (sums, counts) = ([Double](repeating: 0, count: columns), [Int](repeating: 0, count: columns))
    for (value, instant) in zip(values, instants) {
      guard let value, value.isFinite, interval.start <= instant, instant < interval.end else { continue }
      let column = Int(instant.timeIntervalSince(interval.start) / 3600) / hoursPerColumn
      sums[column] += value
      counts[column] += 1
    }
    return zip(sums, counts).map { $1 == 0 ? nil : $0 / Double($1) }
  }

  /// Text of the labels under the columns.
  ///
  /// Up to 30 hours are labelled at every sixth clock hour, longer intervals with the weekday where a day begins.
  public var axis: String {
    let calendar = Calendar.gregorian(in: zone)
    // A single day has up to 25 hours when the clock is set back.
    let showsDays = interval.duration > 30 * 3600
    var line = ""
    for column in 0..<columns {
      for hour in 0..<hoursPerColumn {
        // Hours of elapsed time, so that a column stays an hour where the clock is changed.
        let instant = interval.start + Double((column * hoursPerColumn + hour) * 3600)
        let parts = calendar.dateComponents([.hour, .minute, .weekday], from: instant)
        guard instant < interval.end, let clock = parts.hour, let weekday = parts.weekday else { continue }
        let isMark = showsDays ? clock == 0 || instant == interval.start : clock % 6 == 0
        guard isMark else { continue }
        let label = showsDays ? Self.weekdays[(weekday - 1) % 7] : String(clock)
        // A label that would touch the previous one or end past the last column would be misread, so it is left out.
        guard column + label.count <= max(columns, column == 0 ? label.count : 0), line.isEmpty || line.count < column else { break }
        line = line.padded(toColumns: column) + label
        break
      }
    }
    return line
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
}
