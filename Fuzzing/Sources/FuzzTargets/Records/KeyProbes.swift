import Foundation

/// A text as the raw value of an id.
struct RawText: RawRepresentable, Hashable, Codable, Sendable { var rawValue: String }

/// A number as the raw value of an id.
struct RawNumber: RawRepresentable, Hashable, Codable, Sendable { var rawValue: Int }

/// A UUID as the raw value of an id.
struct RawIdentity: RawRepresentable, Hashable, Codable, Sendable { var rawValue: UUID }

/// A raw value that has one itself.
struct RawRaw: RawRepresentable, Hashable, Codable, Sendable { var rawValue: RawText }

/// A raw value that is neither text nor number.
struct RawPlace: RawRepresentable, Hashable, Codable, Sendable { var rawValue: PlaceID }

/// An id of several parts.
struct PlaceID: Hashable, Codable, Sendable {
  var city: String
  var day: Int?
  var tags: [String]?
}

/// An id that is one of several cases.
enum CaseID: Hashable, Codable, Sendable {
  case none
  case name(String)
  case pair(Int, y: Double)
}
