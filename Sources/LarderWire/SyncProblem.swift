public import Foundation
internal import Larder

/// The reason why a request to the sync server failed: a refusal by the server, or a missing or unusable answer.
///
/// A sync engine that runs by itself tries again after each problem. ``description`` holds no data of a record and can be logged.
public enum SyncProblem: Error, Sendable, Hashable {
  /// The network or the server cannot be reached.
  ///
  /// Send the request again later.
  case unreachable(String)
  /// The server cannot answer now.
  ///
  /// Send the request again after `retryAfter` seconds, or later if `retryAfter` is `nil`.
  case unavailable(retryAfter: Double?)
  /// The device sends too many requests.
  ///
  /// Send the request again after `retryAfter` seconds, or later if `retryAfter` is `nil`.
  case tooManyRequests(retryAfter: Double?)
  /// The server refuses the credentials.
  case unauthorized
  /// The identity of the token may not use the scope.
  case forbidden
  /// The server has purged tombstones of deleted records that the device has not received.
  ///
  /// The device needs a full pass, in which it reads all records of the scope. Tombstones up to the commit `horizon` may be purged.
  case resync(horizon: Int)
  /// The server has another history than the device has stored, such as after a restore from a backup.
  ///
  /// The associated value is the identifier of the server's history.
  case history(String)
  /// The number of the push does not follow the number of the newest push that the server has from this device.
  ///
  /// `last` is the number of the newest push that the server has from this device.
  case gap(last: Int)
  /// The scope accepts no records below the schema version `minimum`.
  case upgradeRequired(minimum: Int)
  /// The request is larger than the server accepts, in bytes or records.
  case tooLarge
  /// The answer is larger than the device accepts.
  case answerTooLarge
  /// The token's identity uses the largest allowed number of scopes already, and the requested scope would be one more.
  case tooManyScopes(most: Int)
  /// The identity has used its quota of bytes, records or devices at the server.
  ///
  /// While the quota is full, edits wait on the device, and deletions are still sent.
  case overQuota(String)
  /// The exchange makes no progress, because the server contradicts itself or other devices write faster than this device merges.
  case noProgress(String)
  /// The message does not have the expected form.
  case malformed(String)
  /// The server refuses the request for another reason.
  case refused(status: Int, detail: String)
}

extension SyncProblem {
  /// HTTP status code of the problem.
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

  /// The problem as `application/problem+json` (RFC 9457).
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

  /// Reads the problem from an answer whose status is not 200.
  public init(status: Int, body: Data, retryAfter: Double? = nil) {
    var json: JSONValue = [:]
    // A proxy may answer with HTML. If the body of the answer is not JSON, the problem is chosen by the status alone.
    do throws(RepositoryError) { json = try JSONValue(json: body) } catch {}
    let (history, detail) = (Self.text(.history, in: json), WireField.detail.cut(json["detail"]?.stringValue ?? ""))
    switch status {
    case 401: self = .unauthorized
    case 403: self = .forbidden
    // A missing or unusable horizon becomes 0, because the device must begin a full pass in any case.
    case 410: self = .resync(horizon: Self.number(.horizon, in: json) ?? 0)
    case 409:
      if let history {
        self = .history(history)
      } else if let last = Self.number(.last, in: json) {
        self = .gap(last: last)
      } else {
        // A larder-server sends `history` or `last` with each 409. A 409 without both of these members comes from a proxy or another
        // service.
        self = .refused(status: status, detail: detail)
      }
    case 413: self = .tooLarge
    // A 422 with the type `too-many-scopes` concerns the scope. Any other 422 concerns the records of the push, and the device divides the
    // push to find the refused record.
    case 422 where json["type"]?.stringValue?.hasSuffix(":too-many-scopes") == true:
      self = .tooManyScopes(most: Self.number(.most, in: json) ?? 0)
    // A missing or unusable minimum becomes 0. No record has a schema version below 0, so the device divides the push to find the refused
    // record.
    case 426: self = .upgradeRequired(minimum: Self.number(.minimum, in: json) ?? 0)
    case 429: self = .tooManyRequests(retryAfter: retryAfter)
    // A proxy whose disk is full answers 507, too. Only a 507 with the type `over-quota` comes from the quota of the identity.
    case 507 where json["type"]?.stringValue?.hasSuffix(":over-quota") == true: self = .overQuota(detail)
    // All other problems with a status of 500 or more may be temporary, such as the 502 of a proxy, so the device tries again.
    case 500...: self = .unavailable(retryAfter: retryAfter)
    default: self = .refused(status: status, detail: detail)
    }
  }

  /// Returns a number of an answer, or `nil` if the number is missing or out of bounds.
  private static func number(_ field: WireField, in json: JSONValue) -> Int? {
    guard let number = json[field.rawValue]?.intValue else { return nil }
    // A number out of bounds counts as missing. The device stores the number and sends it back later, and the server would refuse it.
    do throws(SyncProblem) { try field.check(number) } catch { return nil }
    return number
  }

  /// Returns a text of an answer, or `nil` if the text is missing or out of bounds.
  private static func text(_ field: WireField, in json: JSONValue) -> String? {
    guard let text = json[field.rawValue]?.stringValue else { return nil }
    do throws(SyncProblem) { try field.check(text) } catch { return nil }
    return text
  }

  // The names of the problems are part of the wire format, because devices recognise `too-many-scopes` and `over-quota` by their names.
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

  // The title of a problem holds no name and no value of a record, because titles are written to logs.
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
  /// The problem in English words, without data of any record.
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
