public import Foundation

/// A section of Open-Meteo's answer, as columns of equal length over a list of instants.
public struct OpenMeteoTable: Sendable {
  /// Instant of each row.
  public let instants: [Date]
  private let columns: [String: [Double?]]
  private let units: [String: String]

  /// Decodes a section.
  ///
  /// A missing section becomes a table without rows.
  init(_ section: [String: Column]?, _ units: [String: String]?, offset: Int, isDaily: Bool) throws(ProviderError) {
    var columns: [String: [Double?]] = [:]
    for (name, column) in section ?? [:] where name != "time" { columns[name] = column.numbers }
    instants = try Self.instants(section?["time"], unit: units?["time"], offset: offset, isDaily: isDaily)
    let count = instants.count
    // `rows` indexes by column: a column longer than the list of instants would trap there.
    guard columns.values.allSatisfy({ $0.count == count }) else { throw .malformed("columns of different lengths") }
    self.columns = columns
    self.units = units ?? [:]
  }

  private static func instants(_ time: Column?, unit: String?, offset: Int, isDaily: Bool) throws(ProviderError) -> [Date] {
    guard let time else { return [] }
    var instants: [Date] = []
    if unit == "unixtime", let numbers = time.numbers {
      // Unix times need no offset. The number of a day is the instant of its local midnight.
      for number in numbers {
        guard let number else { throw .malformed("a time is missing") }
        instants.append(try Self.checked(Date(timeIntervalSince1970: number)))
      }
      return instants
    }
    guard let labels = time.texts else { throw .malformed("a time is not yyyy-MM-ddTHH:mm") }
    for label in labels {
      guard let label, let instant = TimeLabel.instant(isDaily ? "\(label)T00:00" : label, offset: offset) else {
        throw .malformed(isDaily ? "a day is not yyyy-MM-dd" : "a time is not yyyy-MM-ddTHH:mm")
      }
      instants.append(try Self.checked(instant))
    }
    return instants
  }

  private static func checked(_ instant: Date) throws(ProviderError) -> Date {
    // Later code converts instants to `LocalDay`, which holds no other years.
    guard LocalDay.holds(instant) else { throw .malformed("a time is outside the years 1 to 9999") }
    return instant
  }

  /// Returns the values of a variable, with `nil` for rows without a value.
  ///
  /// - Throws: ``ProviderError/unexpectedUnit(column:unit:)`` if the unit is another one, so that knots are never shown as kilometres per
  ///   hour.
  public func column(_ name: String, unit: String) throws(ProviderError) -> [Double?] {
    let none = [Double?](repeating: nil, count: instants.count)
    // Before the check of the unit: a column of nulls is no wrong value, whichever unit it has.
    guard let values = columns[name], values.contains(where: { $0 != nil }) else { return none }
    let found = units[name] ?? "no unit"
    guard found != "undefined" else { return none }
    guard found == unit else { throw .unexpectedUnit(column: name, unit: found) }
    // Some services send -0, which would be shown with its sign.
    return values.map { $0?.withoutNegativeZero }
  }

  /// A column in the JSON, as an array of numbers or of texts.
  ///
  /// The section "current" has a single number or text instead of an array.
  enum Column: Decodable {
    case numbers([Double?])
    case texts([String?])
    /// Column of another JSON type, which no request asks for.
    case other

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .numbers([nil])
      } else if let numbers = Self.read([Double?].self, container) {
        self = .numbers(numbers)
      } else if let number = Self.read(Double.self, container) {
        self = .numbers([number])
      } else if let texts = Self.read([String?].self, container) {
        self = .texts(texts)
      } else if let text = Self.read(String.self, container) {
        self = .texts([text])
      } else {
        // No error: an unknown column must not fail the columns that are read.
        self = .other
      }
    }

    private static func read<Value: Decodable>(_ type: Value.Type, _ container: any SingleValueDecodingContainer) -> Value? {
      do { return try container.decode(type) } catch { return nil }
    }

    var numbers: [Double?]? { if case .numbers(let values) = self { values } else { nil } }
    var texts: [String?]? { if case .texts(let values) = self { values } else { nil } }
  }
}
