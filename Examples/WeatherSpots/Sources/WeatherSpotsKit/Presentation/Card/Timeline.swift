public import Foundation

/// A span of time cut into columns of whole hours, under which values and clock hours are put.
public struct Timeline: Hashable, Sendable {
  /// The span.
  public let interval: DateInterval
  /// The zone of the hours and days that are written.
  public let zone: TimeZone
  /// The number of hours in a column.
  public let hoursPerColumn: Int
  /// The number of columns.
  public let columns: Int

  /// Cuts a span into as many columns as there is room for, of an hour at least.
  public init(_ interval: DateInterval, in zone: TimeZone, columns limit: Int) {
    self.interval = interval
    self.zone = zone
    let hours = max(1, Int((interval.duration / 3600).rounded(.up)))
    hoursPerColumn = max(1, (hours + max(1, limit) - 1) / max(1, limit))
    columns = (hours + hoursPerColumn - 1) / hoursPerColumn
  }

  /// Returns the mean of each column's values; `nil` where a column has none.
  ///
  /// Values at instants outside the span are left out.
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

  /// The labels under the columns: every sixth clock hour of a day, or the weekday where a day begins when there are more days.
  public var axis: String {
    let calendar = Calendar.gregorian(in: zone)
    let showsDays = interval.duration > 30 * 3600
    var line = ""
    for column in 0..<columns {
      for hour in 0..<hoursPerColumn {
        let instant = interval.start + Double((column * hoursPerColumn + hour) * 3600)
        let parts = calendar.dateComponents([.hour, .minute, .weekday], from: instant)
        guard instant < interval.end, let clock = parts.hour, let weekday = parts.weekday else { continue }
        let isMark = showsDays ? clock == 0 || instant == interval.start : clock % 6 == 0
        guard isMark else { continue }
        let label = showsDays ? Self.weekdays[(weekday - 1) % 7] : String(clock)
        // A label that would touch the one before it, or end behind the columns, is left out.
        guard column + label.count <= max(columns, column == 0 ? label.count : 0), line.isEmpty || line.count < column else { break }
        line = line.padded(toColumns: column) + label
        break
      }
    }
    return line
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
}
