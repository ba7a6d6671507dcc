import Foundation
import Larder

/// An approximate spot id typed by a person, such as "brest @48.39,-4.49".
///
/// It may differ from the stored id in case and accents, and may lack decimals or the name.
struct TypedID {
  /// A latitude or longitude in degrees, with the place value of its last typed digit.
  private struct Degrees {
    let value: Double
    let step: Double

    init?(_ text: Substring) {
      let text = text.trimmingCharacters(in: .whitespaces)
      // `Double` would also accept an exponent, whose last digit has another place value.
      guard text.wholeMatch(of: /-?[0-9]{1,3}(\.[0-9]{1,20})?/) != nil, let value = Double(text) else { return nil }
      self.value = value
      step = pow(10, -Double(text.split(separator: ".").dropFirst().first?.count ?? 0))
    }

    /// Returns whether the typed degrees may be a rounded or truncated form of a stored coordinate.
    ///
    /// Beside a name a difference of one unit of the last digit is accepted, and longitudes are compared across the antimeridian.
    func fits(_ degrees: Double, besideName: Bool) -> Bool {
      guard besideName else {
        // Rounding moves a coordinate by up to half a unit of the last digit, and truncation by less than one unit towards 0.
        let more = abs(degrees) - abs(value)
        return degrees * value >= 0 && more >= -step / 2 - 1e-9 && more < step - 1e-9
      }
      let distance = abs(degrees - value)
      return min(distance, 360 - distance) <= step + 1e-9
    }
  }

  /// Name before the at sign, which may be empty.
  let name: String
  private let latitude: Degrees
  private let longitude: Degrees
  private let point: Coordinate

  /// Parses a typed id, or returns `nil` for a text that does not end in @LAT,LON.
  ///
  /// Without a name, two decimals are needed.
  init?(_ text: String) {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count > 1, let degrees = parts.last?.split(separator: ",", omittingEmptySubsequences: false), degrees.count == 2,
      let latitude = Degrees(degrees[0]), let longitude = Degrees(degrees[1]),
      let point = Coordinate(latitude: latitude.value, longitude: longitude.value)
    else { return nil }
    // A name may contain an at sign. The last one begins the coordinates.
    name = parts.dropLast().joined(separator: "@").trimmingCharacters(in: .whitespaces)
    // `remove @48,-4` must not remove the only spot of a whole region.
    guard !name.isEmpty || max(latitude.step, longitude.step) < 0.05 else { return nil }
    (self.latitude, self.longitude, self.point) = (latitude, longitude, point)
  }

  /// Query for the spots that the id may refer to, the nearest first.
  var query: Query<Spot> {
    // A degree of a great circle measures 111.2 km, and a degree of longitude at most that. The meter covers rounding.
    let radius = Distance.kilometers(112 * (latitude.step + longitude.step) + 0.001)
    let folded = name.foldedForSearch
    return .spots(near: point, within: radius).filter { [latitude, longitude] spot in
      let hasName = !folded.isEmpty
      return latitude.fits(spot.latitude, besideName: hasName) && longitude.fits(spot.longitude, besideName: hasName)
        && (!hasName || spot.name.foldedForSearch == folded)
    }
  }
}
