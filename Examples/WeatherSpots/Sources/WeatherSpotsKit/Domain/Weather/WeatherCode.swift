/// A WMO code of the kind of weather, including codes without a known description.
public struct WeatherCode: RawRepresentable, Codable, Hashable, Sendable, CustomStringConvertible {
  /// Number of the code, such as 61 for slight rain.
  public let rawValue: Int

  /// Creates a code of any number.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Description from `wmo-codes.csv`, or a text with the number for a code that the file does not have.
  public var description: String { Self.words[rawValue] ?? "Weather code \(rawValue)" }

  private static let words: [Int: String] = {
    var words: [Int: String] = [:]
    for case .success(let record) in CSVReader(PackageResources.wmo_codes_csv) where record.fields.count == 2 {
      // The header row has no number and is skipped here.
      if let code = Int(record.fields[0]) { words[code] = record.fields[1] }
    }
    return words
  }()
}
