import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

/// The preconditions of a request (RFC 9110, 13).
enum Precondition {
  /// Returns what a write expects of the spot, `nil` where the request says nothing.
  ///
  /// - Throws: `HTTPProblem` with 400 for what is neither `*` nor a list of entity tags.
  static func expectation(of request: Request) throws(HTTPProblem) -> SpotExpectation? {
    if let field = request.headers[.ifNoneMatch] {
      guard field == "*" else {
        throw HTTPProblem(.badRequest, detail: "Expected If-None-Match: * for a new spot, or If-Match with a revision.")
      }
      // Nothing is there and not there.
      return request.headers[.ifMatch] == nil ? .absent : .revisions([])
    }
    guard let field = request.headers[.ifMatch] else { return nil }
    let text = field.trimmingCharacters(in: .whitespaces)
    if text == "*" { return .present }
    // As people type it.
    if let revision = UInt64(plain: text) { return .revisions([Revision(revision)]) }
    guard let tags = tags(field), !tags.isEmpty else {
      throw HTTPProblem(.badRequest, detail: "Expected If-Match with the revision in quotation marks, such as \"12\", found another form.")
    }
    // A weak tag, or one that this server never gave, matches nothing.
    return .revisions(tags.compactMap { tag in tag.isWeak ? nil : UInt64(plain: tag.text).map { Revision($0) } })
  }

  /// Returns the key by which a write is done once, `nil` where the request has none.
  ///
  /// - Throws: `HTTPProblem` with 400 for another form.
  static func key(of request: Request) throws(HTTPProblem) -> String? {
    guard let key = request.headers[.idempotencyKey] else { return nil }
    guard (8...64).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw HTTPProblem(.badRequest, detail: "Expected 8 to 64 visible characters for Idempotency-Key, found another form.")
    }
    return key
  }

  /// Returns whether a client has the newest form already: one of its tags is this one, weak or not.
  static func isKnown(_ tag: String, to request: Request) -> Bool {
    guard request.method == .get || request.method == .head, let field = request.headers[.ifNoneMatch] else { return false }
    let text = tags(tag)?.first?.text
    return field == "*" || tags(field)?.contains { $0.text == text } == true
  }

  /// Reads a list of entity tags; `nil` for another text.
  private static func tags(_ field: String) -> [(text: String, isWeak: Bool)]? {
    var rest = Substring(field)
    var tags: [(text: String, isWeak: Bool)] = []
    func skipBlanks() { rest = rest.drop { $0 == " " || $0 == "\t" } }
    while true {
      skipBlanks()
      let isWeak = rest.hasPrefix("W/")
      if isWeak { rest = rest.dropFirst(2) }
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
  /// Reads digits alone; nothing with a sign or zeros before it.
  fileprivate init?(plain text: String) {
    guard let number = UInt64(text), String(number) == text else { return nil }
    self = number
  }
}
