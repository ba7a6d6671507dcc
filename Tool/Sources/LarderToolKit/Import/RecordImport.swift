internal import Foundation
@_spi(Inspection) package import Larder

/// The import of another program's data into a collection.
package struct RecordImport: Answer {
  private let loading: RecordLoading
  private let duplicates: [String]
  private let idType: IDType
  /// The declaration of the ids with which an app finds the records.
  private let declaration: String

  /// The record that counts where several have one id.
  package enum Duplicates: String, CaseIterable, Sendable {
    case refuse, first, last
  }

  /// The options of an import.
  package struct Options: Sendable {
    /// The collection that the records go to.
    package var collection: String
    /// The member that is the id.
    package var member: String
    /// The type of the ids; without it, that which all ids have.
    package var idType: IDType?
    /// The schema version that the values have.
    package var version = 1
    /// Whether all columns of CSV are texts.
    package var isText = false
    /// The record that counts where several have one id.
    package var duplicates = Duplicates.refuse
    /// Whether nothing is written.
    package var isDry = false

    /// Makes options.
    package init(collection: String, member: String) {
      self.collection = collection
      self.member = member
    }
  }

  /// Reads and checks a source, and loads it: records that are there already in the same bytes are left alone.
  ///
  /// Each record gets the key that a repository with ids of the type looks for.
  /// - Throws: `.decodingFailed`, `.invalidKey`, `.tooLarge` and `.alreadyExists` (an id that occurs twice), each with file and line.
  package init(
    _ kind: ImportKind, _ source: String, to target: StoreFile, _ options: Options, _ progress: (Int) -> Void = { _ in }
  ) throws(RepositoryError) {
    guard RecordRules.isCollectionName(options.collection) else {
      throw RepositoryError(.unsupported, "expected a collection's name of 1 to 64 letters, digits, _ . -, found another")
    }
    guard RecordRules.schemaVersions.contains(options.version) else {
      throw RepositoryError(
        .unsupported,
        "expected a schema version from 1 to \(RecordRules.schemaVersions.upperBound), found \(options.version)")
    }
    let source = AbsolutePath.of(source)
    let found = try ProgressLine.during("reading", source) { _ throws(RepositoryError) in
      switch kind {
      case .array: try ArraySource.read(source)
      case .csv: try CSVSource.read(source, id: options.member, idType: options.idType, isText: options.isText)
      case .bodega: try BodegaSource.read(source)
      }
    }
    if let given = options.idType { idType = given } else { idType = try IDType.detected(in: found, options.member) }
    declaration = try idType.declaration(of: options.member, in: found)
    let (records, duplicates) = try Self.records(of: found, idType, options)
    self.duplicates = duplicates
    let contents = StoreContents(records: records, commit: 0, horizon: 0)
    loading = try RecordLoading(contents, from: source, to: target, isDry: options.isDry, progress)
  }

  /// The number of records that a commit of a new store has.
  private static let batchSize = 4_096

  private static func records(
    of found: [ImportedRecord], _ type: IDType, _ options: Options
  ) throws(RepositoryError) -> ([StoredRecord], duplicates: [String]) {
    var positions: [RecordKey: Int] = [:]
    var kept: [(key: RecordKey, source: ImportedRecord)] = []
    var duplicates: [String] = []
    for record in found {
      let key = try record.key(in: options.member, as: type)
      guard let other = positions[key] else {
        positions[key] = kept.count
        kept.append((key, record))
        continue
      }
      let places = "\(record.place): the id occurs in \(kept[other].source.line.map { "line \($0)" } ?? kept[other].source.file) too"
      guard options.duplicates != .refuse else {
        let more =
          "\(record.line.map { "line \($0): " } ?? "")the id occurs in "
          + "\(kept[other].source.line.map { "line \($0)" } ?? kept[other].source.file) too; --duplicates chooses the first or the last"
        throw RepositoryError(.alreadyExists, more, file: record.file, keyHash: key.hash)
      }
      duplicates.append("\(places) [key \(key)]")
      if options.duplicates == .last { kept[other].source = record }
    }
    var records: [StoredRecord] = []
    for (index, (key, source)) in kept.enumerated() {
      let value = source.value.json
      if let problem = RecordRules.problem(key, value, json: source.value) {
        throw RepositoryError(.tooLarge, "\(source.line.map { "line \($0): " } ?? "")\(problem)", file: source.file, keyHash: key.hash)
      }
      records.append(
        StoredRecord(
          collection: options.collection, key: key, revision: Revision(UInt64(1 + index / batchSize)), schemaVersion: options.version,
          value: value))
    }
    return (records, duplicates)
  }

  /// The failure that ended the loading after a part of it was committed.
  package var failure: RepositoryError? { loading.failure }

  /// Done, or done in part.
  package var status: ExitStatus { loading.status }

  /// The duplicates, the counts, and the declaration of the ids that finds the records.
  package func lines(width: Int?) -> [String] { duplicates + loading.lines(width: width) + ["read them with \(declaration)"] }

  /// The object of a loading, with `duplicates` and `idType`.
  package var json: JSONValue {
    var body = loading.json.objectValue ?? JSONObject()
    body["duplicates"] = JSONValue(duplicates.count)
    body["idType"] = JSONValue(idType.rawValue)
    return .object(body)
  }
}
