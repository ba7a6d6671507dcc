import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

/// Reader of the preconditions of a request (RFC 9110, 13) and of its idempotency key.
enum Precondition {
  /// Returns the state in which a write expects the spot, or `nil` if the request has no precondition.
  ///
  /// - Throws: `HTTPProblem` with 400 for a value that is neither `*` nor a list of entity tags nor a bare revision.
  static func expectation(of request: Request) throws(HTTPProblem) -> SpotExpectation? {
    if let field = request.headers[.ifNoneMatch] {
      guard field == "*" else {
        throw HTTPProblem(.badRequest, detail: "Expected If-None-Match: * for a new spot, or If-Match with a revision.")
      }
      // `If-Match` beside it demands that the spot exists and does not. An empty list of revisions never matches: 412.
      return request.headers[.ifMatch] == nil ? .absent : .revisions([])
    }
    guard let field = request.headers[.ifMatch] else { return nil }
    let text = field.trimmingCharacters(in: .whitespaces)
    if text == "*" { return .present }
    // A revision without quotation marks is no entity tag, but people type it so with curl.
    if let revision = UInt64(plain: text) { return .revisions([Revision(revision)]) }
    guard let tags = tags(field), !tags.isEmpty else {
      throw HTTPProblem(.badRequest, detail: "Expected If-Match with the revision in quotation marks, such as \"12\", found another form.")
    }
    // If-Match compares strongly (RFC 9110, 13.1.1), so weak tags match nothing, and neither do tags of another form.
    return .revisions(tags.compactMap { tag in tag.isWeak ? nil : UInt64(plain: tag.text).map { Revision($0) } })
  }

  /// Returns the `Idempotency-Key`, with which a repeated write changes nothing, or `nil` if the request has none.
  ///
  /// - Throws: `HTTPProblem` with 400 for a key other than 8 to 64 visible ASCII characters.
  static func key(of request: Request) throws(HTTPProblem) -> String? {
    guard let key = request.headers[.idempotencyKey] else { return nil }
    // Keys are stored with the write. A short one is likely to meet the key of another write.
    guard (8...64).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw HTTPProblem(.badRequest, detail: "Expected 8 to 64 visible characters for Idempotency-Key, found another form.")
    }
    return key
  }

  /// Returns whether a client has the current version: `If-None-Match` lists its tag, weak or strong.
  static func isKnown(_ tag: String, to request: Request) -> Bool {
    // With other methods the field is a precondition of the write (RFC 9110, 13.1.2), and 304 would be wrong.
    guard request.method == .get || request.method == .head, let field = request.headers[.ifNoneMatch] else { return false }
    let text = tags(tag)?.first?.text
    return field == "*" || tags(field)?.contains { $0.text == text } == true
  }

  /// Reads a list of entity tags (RFC 9110, 8.8.3), or returns `nil` for another text.
  private static func tags(_ field: String) -> [(text: String, isWeak: Bool)]? {
    var rest = Substring(field)
    var tags: [(text: String, isWeak: Bool)] = []
    func skipBlanks() { rest = rest.drop { $0 == " " || $0 == "\t" } }
    while true {
      skipBlanks()
      let isWeak = rest.hasPrefix("W/")
      if isWeak { rest = rest.dropFirst(2) }
      // The list is not split at commas first, because a tag may have one.
      guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else { return nil }
      tags.append((String(rest[rest.index(after: rest.startIndex)..<end]), isWeak))
      rest = rest[rest.index(after: end)...]
      skipBlanks()
      if rest.isEmpty { return tags }
      guard rest.first == "," else { return nil }
      rest = rest.dropFirst()
    }
  }
}

extension HTTPField.Name {
  fileprivate static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .eTag
}

extension UInt64 {
  /// Reads a number that has digits only, and fails for a sign or a leading zero.
  fileprivate init?(plain text: String) {
    // `UInt64` also reads "+12" and "012", which are no tags of this server.
    guard let number = UInt64(text), String(number) == text else { return nil }
    self = number
  }
}
