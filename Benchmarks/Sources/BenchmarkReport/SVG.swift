/// Parts of SVG pictures that are readable on light and on dark ground: nothing is painted behind, and all colours are of middle lightness.
enum SVG {
  static let textColor = "#737b84"
  static let gridColor = "#8b949e"

  static func color(_ kind: Series.Kind) -> String {
    switch kind {
    case .larder: "#3b7ddd"
    case .peer: "#c2783c"
    case .limit: "#3f9b6c"
    }
  }

  static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.append(character)
      }
    }
    return result
  }

  static func text(_ text: String, x: Double, y: Double, anchor: String = "start", isBold: Bool = false) -> String {
    "<text x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor)\"\(isBold ? " font-weight=\"600\"" : "")>\(escaped(text))</text>"
  }

  static func picture(width: Double, height: Double, title: String, _ parts: [String]) -> String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" width="\(number(width))" height="\(number(height))" \
    viewBox="0 0 \(number(width)) \(number(height))" role="img" \
    font-family="system-ui, sans-serif" font-size="12" fill="\(textColor)">
    <title>\(escaped(title))</title>
    \(parts.joined(separator: "\n"))
    </svg>

    """
  }

  /// Returns a number with at most one decimal, so that pictures stay small.
  static func number(_ value: Double) -> String {
    let rounded = (value * 10).rounded() / 10
    return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
  }
}
