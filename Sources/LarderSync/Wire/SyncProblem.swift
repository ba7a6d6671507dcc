public import Foundation
@_spi(Inspection) internal import Larder

/// A failure of an exchange: what a server answers in place of what it was asked for, or why there was no answer.
public enum SyncProblem: Error, Sendable, Hashable {
  /// There is no network, or no server: try again later.
  case unreachable(String)
  /// The server cannot answer now: try again, after so many seconds if it says when.
  case unavailable(retryAfter: Double?)
  /// The device asks too often: try again after so many seconds.
  case tooManyRequests(retryAfter: Double?)
  /// The server does not take the credentials.
  case unauthorized
  /// The server does not let this identity use the scope.
  case forbidden
  /// The server has forgotten deletions that the device has not seen: a full pass is needed.
  case resync(horizon: Int)
  /// The server has another history than the device knows.
  case history(String)
  /// The push has not the number that follows the newest one that the server knows of this device.
  case gap(last: Int)
  /// The scope takes no records of schema versions below this.
  case upgradeRequired(minimum: Int)
  /// The request is larger than the server takes, in bytes or records.
  case tooLarge
  /// The answer is larger than the device takes.
  case answerTooLarge
  /// The identity uses as many scopes as the server lets it; this one would be one more.
  case tooManyScopes(most: Int)
  /// The identity stores as much at the server as it may, in bytes, records or devices: edits wait, and deletions go on.
  case overQuota(String)
  /// The exchange makes no progress: the server contradicts itself, or others write faster than this device merges.
  case noProgress(String)
  /// The message is not of the form that was expected.
  case malformed(String)
  /// The server refuses the request for another reason.
  case refused(status: Int, detail: String)
}

extension SyncProblem {
  /// The status of HTTP that stands for the problem.
  public var status: Int {
    switch self {
    case .unreachable, .unavailable, .noProgress: 503
    case .answerTooLarge: 502
    case .tooManyScopes: 422
    case .tooManyRequests: 429
    case .overQuota: 507
    case .unauthorized: 401
    case .forbidden: 403
    case .resync: 410
    case .history, .gap: 409
    case .upgradeRequired: 426
    case .tooLarge: 413
    case .malformed: 400
    case .refused(let status, _): status
    }
  }

  /// The problem as JSON of the kind `application/problem+json` (RFC 9457).
  public var json: Data {
    var json: JSONValue = ["type": .string("urn:larder:problem:\(name)"), "title": .string(title), "status": JSONValue(status)]
    switch self {
    case .unreachable(let detail), .malformed(let detail), .noProgress(let detail), .overQuota(let detail), .refused(_, let detail):
      json["detail"] = JSONValue(detail)
    case .resync(let horizon): json["horizon"] = JSONValue(horizon)
    case .history(let history): json["history"] = JSONValue(history)
    case .gap(let last): json["last"] = JSONValue(last)
    case .upgradeRequired(let minimum): json["minimum"] = JSONValue(minimum)
    case .tooManyScopes(let most): json["most"] = JSONValue(most)
    case .unavailable, .tooManyRequests, .unauthorized, .forbidden, .tooLarge, .answerTooLarge: break
    }
    return json.json
  }

  /// Reads what a server answered with a status that is no success.
  public init(status: Int, body: Data, retryAfter: Double? = nil) {
    var json: JSONValue = [:]
    do throws(RepositoryError) { json = try JSONValue(json: body) } catch {}
    let (history, detail) = (Self.text(.history, in: json), WireField.detail.cut(json["detail"]?.stringValue ?? ""))
    switch status {
    case 401: self = .unauthorized
    case 403: self = .forbidden
    case 410: self = .resync(horizon: Self.number(.horizon, in: json) ?? 0)
    case 409:
      if let history {
        self = .history(history)
      } else if let last = Self.number(.last, in: json) {
        self = .gap(last: last)
      } else {
        self = .refused(status: status, detail: detail)
      }
    case 413: self = .tooLarge
    // It concerns the scope; any other refusal with this status, the records.
    case 422 where json["type"]?.stringValue?.hasSuffix(":too-many-scopes") == true:
      self = .tooManyScopes(most: Self.number(.most, in: json) ?? 0)
    case 426: self = .upgradeRequired(minimum: Self.number(.minimum, in: json) ?? 0)
    case 429: self = .tooManyRequests(retryAfter: retryAfter)
    // A proxy whose disk is full answers with this status, too.
    case 507 where json["type"]?.stringValue?.hasSuffix(":over-quota") == true: self = .overQuota(detail)
    case 500...: self = .unavailable(retryAfter: retryAfter)
    default: self = .refused(status: status, detail: detail)
    }
  }

  /// Returns a number of an answer; `nil` for none, and for one out of bounds.
  private static func number(_ field: WireField, in json: JSONValue) -> Int? {
    guard let number = json[field.rawValue]?.intValue else { return nil }
    do throws(SyncProblem) { try field.check(number) } catch { return nil }
    return number
  }

  /// Returns a text of an answer; `nil` for none, and for one out of bounds.
  private static func text(_ field: WireField, in json: JSONValue) -> String? {
    guard let text = json[field.rawValue]?.stringValue else { return nil }
    do throws(SyncProblem) { try field.check(text) } catch { return nil }
    return text
  }

  private var name: String {
    switch self {
    case .unreachable: "unreachable"
    case .unavailable: "unavailable"
    case .tooManyRequests: "too-many-requests"
    case .unauthorized: "unauthorized"
    case .forbidden: "forbidden"
    case .resync: "resync"
    case .history: "history"
    case .gap: "gap"
    case .upgradeRequired: "upgrade-required"
    case .tooLarge: "too-large"
    case .answerTooLarge: "answer-too-large"
    case .tooManyScopes: "too-many-scopes"
    case .overQuota: "over-quota"
    case .noProgress: "no-progress"
    case .malformed: "malformed"
    case .refused: "refused"
    }
  }

  private var title: String {
    switch self {
    case .unreachable: "The server cannot be reached."
    case .unavailable: "The server cannot answer now; try again."
    case .tooManyRequests: "Too many requests; try again later."
    case .unauthorized: "Expected a valid bearer token."
    case .forbidden: "The scope may not be used with this token."
    case .resync: "The changes asked for are forgotten; read everything."
    case .history: "The server has another history; read everything as a new device."
    case .gap: "Expected the push that follows the newest one of this device."
    case .upgradeRequired: "The scope needs a newer version of the app."
    case .tooLarge: "The request is larger than allowed."
    case .answerTooLarge: "The answer is larger than allowed."
    case .tooManyScopes(let most): "The identity may use \(most) scopes, and this would be one more."
    case .overQuota: "The identity stores as much as it may."
    case .noProgress: "The exchange makes no progress."
    case .malformed: "The request cannot be read."
    case .refused: "The request is refused."
    }
  }
}

extension SyncProblem: CustomStringConvertible {
  /// The problem in words, which hold nothing of a record.
  public var description: String {
    switch self {
    case .unreachable(let detail), .malformed(let detail), .noProgress(let detail), .overQuota(let detail), .refused(_, let detail):
      detail.isEmpty ? title : "\(title) \(detail)"
    default: title
    }
  }
}

extension SyncProblem: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}
