public import Foundation
public import HTTPTypes

/// Refusal of a request, as a problem in JSON (RFC 9457).
///
/// Throw one from the code that answers a request, and make the response with ``Answer/problem(_:at:)``:
///
/// ```swift
/// throw HTTPProblem(.notFound, detail: "There is no such spot.")
/// ```
///
/// Without a type, the status alone says which problem it is. Give a problem a ``type`` when clients act on it, and put the data that
/// they need into ``members``. Keep text that a client sent out of ``title`` and ``detail``, since answers may be logged and shown.
///
/// Problems that BoundedHTTP itself throws have types that begin with `urn:larder:problem:`.
public struct HTTPProblem: Error, Sendable, Hashable {
  /// JSON value of a member.
  public enum Member: Sendable, Hashable {
    /// The value `null`.
    case null
    /// An integer.
    case number(Int)
    /// A string.
    case text(String)
    /// An array.
    case list([Member])
    /// An object.
    case object([String: Member])
    /// Any value, as valid JSON.
    case encoded(String)
  }

  /// Status of the response.
  public var status: HTTPResponse.Status
  /// URI of the kind of problem, or `about:blank` if the status says all of it.
  public var type: String
  /// Sentence about the kind of problem.
  public var title: String
  /// Sentence about this occurrence.
  public var detail: String?
  /// Further members, by their names.
  ///
  /// They cannot replace the members that every problem has.
  public var members: [String: Member]
  /// Seconds after which the client may try again, for the field `Retry-After`.
  public var retryAfter: Int?

  /// Creates a problem.
  ///
  /// - Parameter title: A sentence about the kind of problem. Leave it out for the reason phrase of the status.
  public init(
    _ status: HTTPResponse.Status, type: String = "about:blank", title: String? = nil, detail: String? = nil,
    members: [String: Member] = [:], retryAfter: Int? = nil
  ) {
    (self.status, self.type, self.title) = (status, type, title ?? status.reasonPhrase)
    (self.detail, self.members, self.retryAfter) = (detail, members, retryAfter)
  }

  /// The problem as `application/problem+json`, with its members in the order of their names.
  public var json: Data {
    var all = members
    (all["type"], all["title"], all["status"]) = (.text(type), .text(title), .number(status.code))
    if let detail { all["detail"] = .text(detail) }
    return Data(Member.object(all).json.utf8)
  }
}

extension HTTPProblem {
  // Devices of larder-server compare these types. Servers of other routes send the same ones.

  /// Problem of a request that does not have the expected form (400).
  package static func malformed(_ detail: String) -> HTTPProblem {
    HTTPProblem(.badRequest, type: "urn:larder:problem:malformed", title: "The request cannot be read.", detail: detail)
  }

  /// Problem of a request that is larger than the limit (413).
  package static let tooLarge = HTTPProblem(
    .contentTooLarge, type: "urn:larder:problem:too-large", title: "The request is larger than allowed.")

  /// Problem of a server that cannot answer now (503).
  package static func unavailable(retryAfter seconds: Int = 1) -> HTTPProblem {
    HTTPProblem(
      .serviceUnavailable, type: "urn:larder:problem:unavailable", title: "The server cannot answer now; try again.", retryAfter: seconds)
  }

  /// Problem of a request that is refused for another reason, which its status and detail say.
  package static func refused(_ status: HTTPResponse.Status, _ detail: String) -> HTTPProblem {
    HTTPProblem(status, type: "urn:larder:problem:refused", title: "The request is refused.", detail: detail)
  }
}

extension HTTPProblem.Member {
  /// The value as one line of JSON.
  fileprivate var json: String {
    switch self {
    case .null: "null"
    case .number(let number): String(number)
    case .text(let text): Self.quoted(text)
    case .list(let elements): "[\(elements.map(\.json).joined(separator: ","))]"
    // Sorted, so that equal problems have equal bytes.
    case .object(let members):
      "{\(members.sorted { $0.key < $1.key }.map { "\(Self.quoted($0.key)):\($0.value.json)" }.joined(separator: ","))}"
    case .encoded(let json): json
    }
  }

  private static func quoted(_ text: String) -> String {
    var json = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": json += "\\\(scalar)"
      case "\u{8}": json += "\\b"
      case "\t": json += "\\t"
      case "\n": json += "\\n"
      case "\u{C}": json += "\\f"
      case "\r": json += "\\r"
      // RFC 8259, 7: the other control characters have no short escape.
      case "\0"..<" ": json += scalar.value < 0x10 ? "\\u000\(String(scalar.value, radix: 16))" : "\\u00\(String(scalar.value, radix: 16))"
      default: json.unicodeScalars.append(scalar)
      }
    }
    return json + "\""
  }
}
