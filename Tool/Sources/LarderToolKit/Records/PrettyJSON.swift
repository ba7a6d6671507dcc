package import Larder

/// Formatter that writes JSON over several lines for a terminal.
package enum PrettyJSON {
  /// Returns the lines of a value.
  ///
  /// Names of members are sorted, and numbers keep all their digits.
  package static func lines(of value: JSONValue) -> [String] { lines(of: value, indentation: "", before: "", after: "") }

  private static func lines(of value: JSONValue, indentation: String, before: String, after: String) -> [String] {
    let inner = indentation + "  "
    switch value {
    // Empty arrays and objects take one line, which the last case returns.
    case .array(let elements) where !elements.isEmpty:
      let last = elements.count - 1
      return ["\(indentation)\(before)["]
        + elements.enumerated().flatMap { lines(of: $1, indentation: inner, before: "", after: $0 == last ? "" : ",") }
        + ["\(indentation)]\(after)"]
    case .object(let object) where object.count > 0:
      let names = object.names
      let last = names.count - 1
      return ["\(indentation)\(before){"]
        + names.enumerated().flatMap { index, name in
          lines(
            of: object[name] ?? .null, indentation: inner, before: "\(TerminalText.escaped(JSONValue(name).text)): ",
            after: index == last ? "" : ",")
        } + ["\(indentation)}\(after)"]
    default: return ["\(indentation)\(before)\(TerminalText.escaped(value.text))\(after)"]
    }
  }
}
