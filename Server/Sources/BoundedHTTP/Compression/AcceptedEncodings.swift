/// The codings that a client takes, as `Accept-Encoding` tells them (RFC 9110, 12.5.3).
package struct AcceptedEncodings: Sendable {
  /// Whether an answer in gzip is welcome: it is named, or everything is, and it is not ranked below an answer as it is.
  package let takesGzip: Bool

  /// Reads the field; without one, a client that says nothing gets answers as they are.
  package init(_ field: String?) {
    var weights: [String: Double] = [:]
    for part in (field ?? "").split(separator: ",") {
      let words = part.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
      guard let coding = words.first, !coding.isEmpty else { continue }
      let weight = words.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
      weights[coding == "x-gzip" ? "gzip" : coding] = weight
    }
    let gzip = weights["gzip"] ?? weights["*"] ?? 0
    takesGzip = gzip > 0 && gzip >= weights["identity"] ?? 0
  }
}
