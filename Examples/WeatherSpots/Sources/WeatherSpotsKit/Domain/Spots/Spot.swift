// Spots/ holds the places of a user: the validated value, its schema and queries, and its export formats.
// Invariant: every Spot made by its initializers from user input is valid. The CSV reader, the commands and the forecasts use it.

public import Foundation

/// A place with a name, coordinates and a time zone.
public struct Spot: Codable, Hashable, Identifiable, Sendable {
  /// The id, composed of name and coordinates, so that a place imported twice is one spot and two places of one name are two.
  public let id: String
  /// Name, in Unicode's composed form.
  public let name: String
  /// Latitude in degrees, -90 to 90, positive to the north.
  public let latitude: Double
  /// Longitude in degrees, -180 to 180, positive to the east.
  public let longitude: Double
  /// IANA name of the time zone in which the spot's days begin and end.
  public let timezone: String
  /// ISO 3166 code of the country in upper case, or an empty text.
  public let country: String
  /// Kind of place in lower case, such as "coast" or "lake", or an empty text.
  public let kind: String
  /// Source of the entry with its licence, which is shown wherever the spot is shown.
  public let source: String
  /// Rating from 1 to 5, or 0 for none.
  public let rating: Int
  /// Notes of the user, or an empty text.
  public let notes: String
  /// Tags of the spot in lower case, sorted and without duplicates.
  public internal(set) var tags: [String]
  /// Number of visits.
  public internal(set) var visits: Int

  /// Creates a spot, or throws a `SpotProblem` with the invalid field.
  public init(
    name: String, latitude: Double, longitude: Double, timezone: String, country: String = "", kind: String = "", source: String = "",
    rating: Int = 0, notes: String = "", tags: [String] = [], visits: Int = 0
  ) throws(SpotProblem) {
    // The name is part of the id: composed and decomposed accents would make two spots of one place.
    let name = name.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
    guard !name.isEmpty else { throw SpotProblem(.name, "name is empty") }
    guard name.utf8.count <= 200 else { throw SpotProblem(.name, "name is longer than 200 bytes") }
    guard (-90.0...90.0).contains(latitude) else { throw SpotProblem(.latitude, "latitude is outside -90 to 90") }
    guard (-180.0...180.0).contains(longitude) else { throw SpotProblem(.longitude, "longitude is outside -180 to 180") }
    guard TimeZone.named(timezone) != nil else { throw SpotProblem(.timezone, "timezone is not a known zone such as Europe/Paris") }
    let (country, kind) = (Self.normalizedCountry(country), Self.normalizedKind(kind))
    guard (0...5).contains(rating) else { throw SpotProblem(.rating, "rating is outside 0 to 5") }
    for (field, text) in [(SpotField.name, name), (.country, country), (.kind, kind), (.source, source), (.notes, notes)] {
      // Control characters could move a terminal's cursor. None is stored, so no output has to escape them.
      guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw SpotProblem(field, "\(field.rawValue) contains a control character")
      }
      guard text.utf8.count <= 1000 else { throw SpotProblem(field, "\(field.rawValue) is longer than 1000 bytes") }
    }
    self.name = name
    // -0 and 0 are one place, but would be two texts in the id.
    self.latitude = latitude.withoutNegativeZero
    self.longitude = longitude.withoutNegativeZero
    self.timezone = timezone
    self.country = country
    self.kind = kind
    self.source = source
    self.rating = rating
    self.notes = notes
    // An exported spot must be importable, and a sync merge can have given it more tags than the limit for one device.
    self.tags = try Self.normalizedTags(tags, known: 20 * Self.tagLimit)
    self.visits = try Self.checkedVisits(visits)
    id = "\(name) @\(self.latitude),\(self.longitude)"
  }

  /// Decodes a stored spot, with no tags and no visits if these keys are missing.
  ///
  /// They may be missing in an export of an older version, or in a record that another program has written.
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
    // A sync merge appends the tags of another device. Equal spots must have equal arrays.
    tags = Set(try container.decodeIfPresent([String].self, forKey: .tags) ?? []).sorted()
    visits = try container.decodeIfPresent(Int.self, forKey: .visits) ?? 0
  }

  /// Returns the stored form of a country: its ISO code, or the trimmed text in upper case if it is unknown.
  static func normalizedCountry(_ text: String) -> String {
    CountryNames.code(for: text) ?? text.trimmingCharacters(in: .whitespaces).uppercased()
  }

  /// Returns the stored form of a kind, in lower case, so that an index finds it in any case.
  static func normalizedKind(_ text: String) -> String { text.trimmingCharacters(in: .whitespaces).lowercased() }

  /// Time zone of the spot, or GMT if this system has no zone of that name.
  ///
  /// The name was checked when the spot was created, perhaps on another system.
  public var zone: TimeZone { TimeZone(identifier: timezone) ?? .gmt }
}

/// The columns of a CSV file of spots, in the order in which they are written.
public enum SpotField: String, CaseIterable, Sendable {
  /// A column of the same name.
  case name, latitude, longitude, timezone, country, kind, source, rating, notes, tags, visits

  /// Whether an import fails for a file without this column.
  var isRequired: Bool { [.name, .latitude, .longitude, .timezone].contains(self) }
}

/// An error for values that do not make a valid spot.
public struct SpotProblem: Error, Hashable, CustomStringConvertible {
  /// Field with the invalid value.
  public let field: SpotField
  /// Description of the problem, without the value.
  public let description: String

  init(_ field: SpotField, _ description: String) {
    self.field = field
    self.description = description
  }
}

extension String {
  /// Returns whether the text has only ASCII letters, ASCII digits and characters of `others`.
  func hasOnlyAlphanumerics(and others: String) -> Bool {
    unicodeScalars.allSatisfy { ($0.isASCII && Character($0).isLetter) || ("0"..."9").contains($0) || others.unicodeScalars.contains($0) }
  }
}
