internal import Foundation

/// One step that brings the records of one schema version to the next.
///
/// ```swift
/// RepositorySchema<Spot>("spots", version: 3, migrations: [
///   .init(from: 1, SpotV1.self, to: SpotV2.self) { SpotV2($0) },
///   .init(from: 2) { object in object["timeZone"] = "UTC" },
/// ])
/// ```
///
/// A record is brought up by each step from its own version on, when it is read or in the background, whichever comes first. So a step must
/// give the same result for the same record. When a step throws, its record stays as it was and is reported; other records are migrated.
/// Try a plan on a store without changing it with ``Store/dryRun(_:schema:options:)``.
///
/// ## Cost
///
/// A typed step decodes and encodes each older record once; a step on the JSON object parses and writes it. The background run commits a
/// batch at a time, so that saves go on meanwhile.
///
/// ## Topics
///
/// ### Making a step
/// - ``init(from:_:to:_:)``
/// - ``init(from:_:)``
/// - ``JSONObject``
/// - ``JSONValue``
public struct Migration: Sendable {
  /// The version that the step begins from; it leads to the next.
  public let from: Int
  let apply: @Sendable (Data, JSONCoder) throws -> Data

  /// Makes a step from one type to another; the last step of a plan mostly leads to the repository's own type.
  ///
  /// The old type is decoded from JSON and the new one encoded as JSON, so both must spell their coding keys as the versions they stand
  /// for. A result that nests deeper than a record may (128) fails for its record, as what the step throws does.
  public init<Old: Decodable & Sendable, New: Encodable & Sendable>(
    from version: Int, _ old: Old.Type, to new: New.Type, _ migrate: @escaping @Sendable (Old) throws -> New
  ) {
    from = version
    apply = { data, json in
      let value = try migrate(json.decode(Old.self, from: data))
      do {
        return try json.encode(value).json
      } catch let error as JSONTooDeep {
        throw RepositoryError(.tooLarge, "the step's result nests deeper than \(error.limit), the most that a record may")
      }
    }
  }

  /// Makes a step that edits the record's JSON object, for small changes.
  ///
  /// What it does not touch stays as it is, numbers digit by digit.
  public init(from version: Int, _ edit: @escaping @Sendable (inout JSONObject) throws -> Void) {
    from = version
    apply = { data, _ in
      var object = try JSONObject(json: data)
      try edit(&object)
      return object.json
    }
  }
}

/// The steps of a schema, in order.
struct MigrationPlan: Sendable {
  let version: Int
  let steps: [Migration]

  /// The defect of the plan, if any; the error names the step.
  var defect: RepositoryError? {
    guard !steps.isEmpty else { return nil }
    let sorted = steps.map(\.from).sorted()
    func error(_ what: String) -> RepositoryError { RepositoryError(.unsupported, "migrations: \(what)") }
    func step(_ from: Int) -> String { "the step from version \(from) to \(from &+ 1)" }
    for (step, next) in zip(sorted, sorted.dropFirst()) where step == next {
      return error("there are two steps from version \(step) to \(step &+ 1)")
    }
    if sorted[0] < 1 { return error("\(step(sorted[0])) begins before version 1") }
    if let beyond = sorted.first(where: { $0 >= version }) { return error("\(step(beyond)) leads beyond the schema's version \(version)") }
    for (from, next) in zip(sorted, sorted.dropFirst()) where next != from + 1 { return error("\(step(from + 1)) is missing") }
    if let highest = sorted.last, highest != version - 1 { return error("\(step(highest + 1)) is missing") }
    for (previous, next) in zip(steps, steps.dropFirst()) where next.from < previous.from {
      return error("\(step(next.from)) must come before \(step(previous.from))")
    }
    return nil
  }

  /// Brings stored bytes up to the schema's version.
  ///
  /// A schema without steps takes old records as they are: the change was one that `Codable` bridges, such as a new optional property.
  /// - Throws: `.migrationFailed` with the step that failed.
  func migrate(_ value: Data, from version: Int, key: RecordKey, _ json: JSONCoder) throws(RepositoryError) -> Data {
    guard let first = steps.first else { return value }
    guard first.from <= version else {
      throw RepositoryError(
        .migrationFailed, "there is no step from version \(version); the oldest is from \(first.from)", keyHash: key.hash)
    }
    var value = value
    for step in steps where step.from >= version {
      do {
        value = try step.apply(value, json)
      } catch {
        throw RepositoryError(
          .migrationFailed, "the step from version \(step.from) to \(step.from + 1) failed", keyHash: key.hash, underlying: error)
      }
    }
    return value
  }
}
