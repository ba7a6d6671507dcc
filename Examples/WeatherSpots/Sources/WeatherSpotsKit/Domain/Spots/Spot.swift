// Spots/ holds the places a person cares about: what a spot is, how it is found by name or by distance, and how it is written out.
// Invariant: a Spot that exists is valid. Called by the CSV reader, the commands and the forecasts.

public import Foundation

/// A place with a name, coordinates and a time zone.
public struct Spot: Codable, Hashable, Identifiable, Sendable {
  /// The name and the coordinates: the same place imported twice is one spot, and two places of one name are two.
  public let id: String
  /// The name, in Unicode's composed form.
  public let name: String
  /// Degrees north, -90 to 90.
  public let latitude: Double
  /// Degrees east, -180 to 180.
  public let longitude: Double
  /// The IANA name of the zone in which the spot's days begin and end.
  public let timezone: String
  /// The ISO 3166 code of the country in capital letters, or nothing.
  public let country: String
  /// A word such as "coast" or "lake" in small letters, or nothing.
  public let kind: String
  /// The source of the entry, with its licence; shown wherever the spot is.
  public let source: String
  /// The rating, from 1 to 5; 0 for none.
  public let rating: Int
  /// The notes; empty for none.
  public let notes: String
  /// The words that the spot is marked with, in small letters and in order, each once.
  public internal(set) var tags: [String]
  /// The number of visits.
  public internal(set) var visits: Int

  /// Makes a spot, or says which value cannot be.
  public init(
    name: String, latitude: Double, longitude: Double, timezone: String, country: String = "", kind: String = "", source: String = "",
    rating: Int = 0, notes: String = "", tags: [String] = [], visits: Int = 0
  ) throws(SpotProblem) {
    var zones = ZoneNames()
    try self.init(
      name: name, latitude: latitude, longitude: longitude, timezone: timezone, country: country, kind: kind, source: source,
      rating: rating, notes: notes, tags: tags, visits: visits, zones: &zones)
  }

  /// Makes one of many spots, remembering the zones that were looked up.
  init(
    name: String, latitude: Double, longitude: Double, timezone: String, country: String, kind: String, source: String,
    rating: Int, notes: String, tags: [String], visits: Int, zones: inout ZoneNames
  ) throws(SpotProblem) {
    let name = name.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
    guard !name.isEmpty else { throw SpotProblem(.name, "name is empty") }
    guard name.utf8.count <= 200 else { throw SpotProblem(.name, "name is longer than 200 bytes") }
    guard (-90.0...90.0).contains(latitude) else { throw SpotProblem(.latitude, "latitude is outside -90 to 90") }
    guard (-180.0...180.0).contains(longitude) else { throw SpotProblem(.longitude, "longitude is outside -180 to 180") }
    guard zones.contains(timezone) else { throw SpotProblem(.timezone, "timezone is not a known zone such as Europe/Paris") }
    let (country, kind) = (Self.normalizedCountry(country), Self.normalizedKind(kind))
    guard (0...5).contains(rating) else { throw SpotProblem(.rating, "rating is outside 0 to 5") }
    for (field, text) in [(SpotField.name, name), (.country, country), (.kind, kind), (.source, source), (.notes, notes)] {
      // Nothing that could move a terminal's cursor is ever stored, so nothing has to be escaped when it is shown.
      guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw SpotProblem(field, "\(field.rawValue) contains a control character")
      }
      guard text.utf8.count <= 1000 else { throw SpotProblem(field, "\(field.rawValue) is longer than 1000 bytes") }
    }
    self.name = name
    self.latitude = latitude.withoutNegativeZero
    self.longitude = longitude.withoutNegativeZero
    self.timezone = timezone
    self.country = country
    self.kind = kind
    self.source = source
    self.rating = rating
    self.notes = notes
    // As many as several devices may have together: a list that was exported is read again.
    self.tags = try Self.normalizedTags(tags, known: 20 * Self.tagLimit)
    self.visits = try Self.checkedVisits(visits)
    id = "\(name) @\(self.latitude),\(self.longitude)"
  }

  /// Reads a spot; one without tags or visits has none.
  ///
  /// An export of an older version, or a record that another program has written, may lack them.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(String.self, forKey: .id)
    name = try container.decode(String.self, forKey: .name)
    latitude = try container.decode(Double.self, forKey: .latitude)
    longitude = try container.decode(Double.self, forKey: .longitude)
    timezone = try container.decode(String.self, forKey: .timezone)
    country = try container.decode(String.self, forKey: .country)
    kind = try container.decode(String.self, forKey: .kind)
    source = try container.decode(String.self, forKey: .source)
    rating = try container.decode(Int.self, forKey: .rating)
    notes = try container.decode(String.self, forKey: .notes)
    // A merge appends what another device has added.
    tags = Set(try container.decodeIfPresent([String].self, forKey: .tags) ?? []).sorted()
    visits = try container.decodeIfPresent(Int.self, forKey: .visits) ?? 0
  }

  /// Returns the stored form of a country, so that an index finds it in any case.
  static func normalizedCountry(_ text: String) -> String {
    CountryNames.code(for: text) ?? text.trimmingCharacters(in: .whitespaces).uppercased()
  }

  /// Returns the stored form of a kind, so that an index finds it in any case.
  static func normalizedKind(_ text: String) -> String { text.trimmingCharacters(in: .whitespaces).lowercased() }

  /// The spot's time zone; GMT if this system does not know the name, which was checked when the spot was made.
  public var zone: TimeZone { TimeZone(identifier: timezone) ?? .gmt }
}

/// The columns of a spot in a file, in the order in which they are written.
public enum SpotField: String, CaseIterable, Sendable {
  /// One column each.
  case name, latitude, longitude, timezone, country, kind, source, rating, notes, tags, visits

  /// Whether a file without this column cannot be imported.
  var isRequired: Bool {
    switch self {
    case .name, .latitude, .longitude, .timezone: true
    case .country, .kind, .source, .rating, .notes, .tags, .visits: false
    }
  }
}

/// The reason why values are not a valid spot.
public struct SpotProblem: Error, Hashable, CustomStringConvertible {
  /// The value at fault.
  public let field: SpotField
  /// A description of the problem that does not repeat the value.
  public let description: String

  init(_ field: SpotField, _ description: String) {
    self.field = field
    self.description = description
  }
}

/// The zone names seen so far, because looking one up costs more than everything else in a row.
struct ZoneNames {
  private var known: [String: Bool] = [:]

  mutating func contains(_ name: String) -> Bool {
    if let answer = known[name] { return answer }
    // The system looks zones up as files: only names that cannot leave the zone directory are asked for.
    let isName =
      !name.isEmpty && name.utf8.count <= 64 && !name.contains("..") && !name.hasPrefix("/") && name.utf8.allSatisfy(Self.isAllowed)
    let answer = isName && TimeZone(identifier: name) != nil
    known[name] = answer
    return answer
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "/"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"): true
    default: false
    }
  }
}
