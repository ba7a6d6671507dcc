/// Values as a row of bars, one column each.
public enum Sparkline {
  private static let blocks = Array("▁▂▃▄▅▆▇█")
  private static let letters = Array(".:-=+*#@")

  /// Returns the row: the lowest value as the lowest bar, the highest as the highest, and a space where there is none.
  ///
  /// Where all values are equal and there is no other bound, they are bars of half height.
  ///
  /// - Parameters:
  ///   - values: The values; what is not finite is no value.
  ///   - includingZero: Whether the lowest bar is at most 0, so that the height of a bar is the size of its value.
  ///   - isPlain: Whether the bars are ASCII: `.:-=+*#@`.
  public static func text(_ values: [Double?], includingZero: Bool = false, isPlain: Bool = false) -> String {
    let bars = isPlain ? letters : blocks
    let finite = values.compactMap { $0 }.filter(\.isFinite) + (includingZero ? [0] : [])
    guard let low = finite.min(), let high = finite.max() else { return String(repeating: " ", count: values.count) }
    return String(
      values.map { value -> Character in
        guard let value, value.isFinite else { return " " }
        // Halves, so that no difference of what a service may send is infinite.
        guard high / 2 > low / 2 else { return includingZero ? bars[0] : bars[bars.count / 2 - 1] }
        return bars[min(bars.count - 1, Int((value / 2 - low / 2) / (high / 2 - low / 2) * Double(bars.count)))]
      })
  }
}
