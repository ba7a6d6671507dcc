/// A chart of one text line that draws each value as a bar of one column.
public enum Sparkline {
  private static let blocks = Array("▁▂▃▄▅▆▇█")
  private static let letters = Array(".:-=+*#@")

  /// Returns the chart, scaled from the lowest value to the highest, with a space for each missing value.
  ///
  /// If all values are equal and `includingZero` is false, the bars have half height.
  ///
  /// - Parameters:
  ///   - values: The values. Infinity and NaN count as missing.
  ///   - includingZero: Whether the scale includes 0, so that the height of a bar shows the size of its value.
  ///   - isPlain: Whether the bars are ASCII: `.:-=+*#@`.
  public static func text(_ values: [Double?], includingZero: Bool = false, isPlain: Bool = false) -> String {
    let bars = isPlain ? letters : blocks
    let finite = values.compactMap { $0 }.filter(\.isFinite) + (includingZero ? [0] : [])
    guard let low = finite.min(), let high = finite.max() else { return String(repeating: " ", count: values.count) }
    return String(
      values.map { value -> Character in
        guard let value, value.isFinite else { return " " }
        // Halves: the difference of two finite numbers from a service can overflow to infinity.
        guard high / 2 > low / 2 else { return includingZero ? bars[0] : bars[bars.count / 2 - 1] }
        // The highest value has the quotient 1, which would index one past the last bar.
        return bars[min(bars.count - 1, Int((value / 2 - low / 2) / (high / 2 - low / 2) * Double(bars.count)))]
      })
  }
}
