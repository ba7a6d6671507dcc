/// A WMO code of the kind of weather; codes without words are kept.
public struct WeatherCode: RawRepresentable, Codable, Hashable, Sendable, CustomStringConvertible {
  /// The number, such as 61 for slight rain.
  public let rawValue: Int

  /// Makes a code of any number.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// The words of `wmo-codes.csv`.
  public var description: String { Self.words[rawValue] ?? "Weather code \(rawValue)" }

  private static let words: [Int: String] = {
    var words: [Int: String] = [:]
    for case .success(let record) in CSVReader(PackageResources.wmo_codes_csv) where record.fields.count == 2 {
      if let code = Int(record.fields[0]) { words[code] = record.fields[1] }
    }
    return words
  }()
}
