internal import Foundation

/// A migration step, which turns records of one schema version into records of the next version.
///
/// ```swift
/// RepositorySchema<Spot>("spots", version: 4, migrations: [
///   .init(from: 1, SpotV1.self, to: SpotV2.self) { SpotV2($0) },
///   .init(from: 2, .rename("town", to: "place"), .remove("draft")),
///   .init(from: 3) { object in object["depth"] = JSONValue((object["depthInFeet"]?.doubleValue ?? 0) * 0.3048) },
/// ])
/// ```
///
/// Larder applies the steps to a record beginning with the record's own version, when the record is read or in the background, whichever
/// comes first. A step must therefore give the same result each time for the same record. If a step throws, its record is left unchanged
/// and reported, and the other records are migrated. Use ``Store/dryRun(_:schema:options:)`` to try the steps without changing the store.
///
/// ## Cost
///
/// A typed step decodes and encodes each older record once. A step on the JSON object parses and writes each older record once. A step of
/// declared edits copies the record's bytes in one pass. The migration in the background commits one batch of records at a time, so that
/// saves can run between the batches.
///
/// ## Topics
///
/// ### Making a step
/// - ``init(from:_:to:_:)``
/// - ``init(from:_:)-(_,JSONEdit...)``
/// - ``JSONEdit``
/// - ``JSONPath``
/// - ``init(from:_:)-(_,(JSONObject)->Void)``
/// - ``JSONObject``
/// - ``JSONValue``
public struct Migration: Sendable {
  /// The version of the records that the step turns into records of the next version.
  public let from: Int
  let apply: @Sendable (Data, JSONCoder) throws -> Data

  /// Makes a step from one type to another.
  ///
  /// The last step of a plan usually leads to the repository's own type. The old type is decoded from JSON and the new type is encoded as
  /// JSON. Give each type the coding keys of its version. The migration of a record fails if your closure throws, or if its result nests
  /// deeper than 128 levels, the limit for a record.
  public init<Old: Decodable & Sendable, New: Encodable & Sendable>(
    from version: Int, _ old: Old.Type, to new: New.Type, _ migrate: @escaping @Sendable (Old) throws -> New
  ) {
    from = version
    apply = { data, json in
      let value = try migrate(json.decode(Old.self, from: data))
      do {
        // The result is encoded inside the migration step, so that the error for a result that nests too deep names the step.
        return try json.encode(value).json
      } catch let error as JSONTooDeep {
        throw RepositoryError(.tooLarge, "the step's result nests deeper than \(error.limit), the most that a record may")
      }
    }
  }

  /// Makes a step that edits the record's JSON object.
  ///
  /// Use a step on the JSON object for small changes. Members of the object that the closure does not change stay as they are, numbers
  /// digit by digit.
  public init(from version: Int, _ edit: @escaping @Sendable (inout JSONObject) throws -> Void) {
    from = version
    apply = { data, _ in
      var object = try JSONObject(json: data)
      try edit(&object)
      return object.json
    }
  }

  /// Makes a step of declared edits, which are applied in order.
  ///
  /// A step without edits changes nothing. Members of the record's object that no edit names keep their values, numbers digit by digit. The
  /// migration of a record by a step with edits fails if the record is not a JSON object.
  public init(from version: Int, _ edits: JSONEdit...) {
    from = version
    let editor = JSONEditor(edits)
    apply = { data, _ in try editor.edit(data) }
  }
}

/// The migration steps of a schema, in order.
struct MigrationPlan: Sendable {
  let version: Int
  let steps: [Migration]

  /// Error that names the missing, repeated or misplaced step of the plan, or `nil` if the plan has no defect.
  var defect: RepositoryError? {
    // A schema without migration steps is no defect: `Codable` then decodes the records of older versions as they are.
    guard !steps.isEmpty else { return nil }
    // All checks but the last use sorted steps, so that a wrong order is reported only if no step is missing and no step occurs twice.
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

  /// Migrates the stored bytes of a record to the schema's version.
  ///
  /// A schema without steps returns the bytes of older records unchanged. Without steps, a change of version must be one that `Codable`
  /// bridges, such as a new optional property.
  /// - Throws: `.migrationFailed` with the step that failed.
  func migrate(_ value: Data, from version: Int, key: RecordKey, _ json: JSONCoder) throws(RepositoryError) -> Data {
    guard let first = steps.first else { return value }
    // If the first step begins at a later version than the record has, the step would get bytes of a version that it was not written for.
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
