/// Content codings that a client accepts, from its `Accept-Encoding` field (RFC 9110, 12.5.3).
package struct AcceptedEncodings: Sendable {
  /// Whether to answer in gzip: the field accepts it, by name or by `*`, and does not prefer uncompressed answers.
  package let takesGzip: Bool

  /// Parses a field `Accept-Encoding`.
  ///
  /// Without one, the client gets uncompressed answers.
  package init(_ field: String?) {
    var weights: [String: Double] = [:]
    for part in (field ?? "").split(separator: ",") {
      let words = part.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
      guard let coding = words.first, !coding.isEmpty else { continue }
      let weight = words.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
      // RFC 9110, 8.4.1.3: `x-gzip` is an old name of the same coding.
      weights[coding == "x-gzip" ? "gzip" : coding] = weight
    }
    let gzip = weights["gzip"] ?? weights["*"] ?? 0
    takesGzip = gzip > 0 && gzip >= weights["identity"] ?? 0
  }
}
