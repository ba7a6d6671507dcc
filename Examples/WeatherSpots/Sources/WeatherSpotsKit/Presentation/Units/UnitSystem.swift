// Units/ turns stored numbers into measurements and measurements into text.
// Invariant: the store has one unit for each quantity, named in the property. A value is converted once, when it is shown, and never back.
// Foundation has no formatter of measurements on Linux. Its conversions are inexact in the sixth digit (10 m/s are 35.99997 km/h), so
// converted values are compared with a tolerance.

public import Foundation

/// A system of units in which values are shown.
public enum UnitSystem: String, CaseIterable, Sendable, Codable {
  /// Degrees Celsius, kilometres per hour, millimetres, metres, hectopascals.
  case metric
  /// Degrees Fahrenheit, miles per hour, inches, feet, inches of mercury.
  case imperial

  /// Returns a value converted to this system's unit, or unchanged if it already has that unit.
  public func value<Dimension>(_ measurement: Measurement<Dimension>, as quantity: Quantity<Dimension>) -> Double {
    let unit = quantity.scale(in: self).unit
    // Without a conversion the stored digits stay exact. A converted -0.0 must not be shown as "-0".
    return (measurement.unit == unit ? measurement.value : measurement.converted(to: unit).value).withoutNegativeZero
  }

  /// Returns a value as text in this system's unit, with the decimals of the quantity and never as "-0".
  public func number<Dimension>(_ measurement: Measurement<Dimension>, as quantity: Quantity<Dimension>) -> String {
    value(measurement, as: quantity).text(decimals: quantity.scale(in: self).decimals)
  }

  /// Returns a value as text with its unit, such as 21.5 °C or 71 °F.
  public func text<Dimension>(_ measurement: Measurement<Dimension>, as quantity: Quantity<Dimension>) -> String {
    "\(number(measurement, as: quantity)) \(symbol(of: quantity))"
  }

  /// Returns the symbol of a quantity's unit, such as km/h.
  public func symbol<Dimension>(of quantity: Quantity<Dimension>) -> String { quantity.scale(in: self).unit.symbol }
}

/// A measured quantity with its unit and number of decimals in each system of units.
public struct Quantity<Dimension: Foundation.Dimension> {
  /// A unit and the number of decimals shown in it.
  struct Scale {
    let unit: Dimension
    let decimals: Int
  }

  private let metric: Scale
  private let imperial: Scale

  init(_ metric: Dimension, _ metricDecimals: Int, _ imperial: Dimension, _ imperialDecimals: Int) {
    self.metric = Scale(unit: metric, decimals: metricDecimals)
    self.imperial = Scale(unit: imperial, decimals: imperialDecimals)
  }

  func scale(in system: UnitSystem) -> Scale { system == .metric ? metric : imperial }
}

extension Quantity where Dimension == UnitTemperature {
  /// Temperature of air or water, shown in °C with one decimal or in °F without decimals.
  public static var temperature: Self { Self(.celsius, 1, .fahrenheit, 0) }
}

extension Quantity where Dimension == UnitSpeed {
  /// Wind speed, shown in km/h or mph without decimals.
  public static var windSpeed: Self { Self(.kilometersPerHour, 0, .milesPerHour, 0) }
}

extension Quantity where Dimension == UnitPressure {
  /// Air pressure, shown in hPa without decimals or in inHg with two.
  public static var pressure: Self { Self(.hectopascals, 0, .inchesOfMercury, 2) }
}

extension Quantity where Dimension == UnitLength {
  /// Precipitation, shown in millimetres with one decimal or in inches with two.
  public static var precipitation: Self { Self(.millimeters, 1, .inches, 2) }
  /// Wave height, shown in metres or feet with one decimal.
  public static var waveHeight: Self { Self(.meters, 1, .feet, 1) }
  /// Distance between two places, shown in kilometres or miles with one decimal.
  public static var distance: Self { Self(.kilometers, 1, .miles, 1) }
}
