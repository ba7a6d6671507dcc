internal import Foundation
@_spi(Inspection) package import Larder

/// Import of another program's data into a collection of a new or an existing store.
package struct RecordImport: Answer {
  private let loading: RecordLoading
  private let duplicates: [String]
  private let idType: IDType
  /// Swift declaration of the id member with which an app finds the records.
  private let declaration: String

  /// Choice among several records with one id.
  package enum Duplicates: String, CaseIterable, Sendable {
    case refuse, first, last
  }

  /// Options of the command `import`.
  package struct Options: Sendable {
    /// Collection that the records are written to.
    package var collection: String
    /// Name of the member, or column, that holds the id.
    package var member: String
    /// Type of the ids.
    ///
    /// `nil` to determine it from all ids of the source.
    package var idType: IDType?
    /// Schema version of the imported values.
    package var version = 1
    /// Whether all columns of a CSV file are read as texts.
    package var isText = false
    /// Which of several records with one id is imported.
    package var duplicates = Duplicates.refuse
    /// Whether the command only reports the changes and writes nothing.
    package var isDry = false

    /// Creates options with the given collection and id member, and defaults for the rest.
    package init(collection: String, member: String) {
      self.collection = collection
      self.member = member
    }
  }

  /// Reads and checks a source, then writes its records.
  ///
  /// Records that the store already has with the same bytes are skipped.
  ///
  /// Each record gets the key under which a repository with ids of that type finds it.
  /// - Throws: `.decodingFailed`, `.invalidKey`, `.tooLarge`, and `.alreadyExists` for an id that occurs twice, each with file and line.
  package init(
    _ kind: ImportKind, _ source: String, to target: StoreFile, _ options: Options, _ progress: (Int) -> Void = { _ in }
  ) throws(RepositoryError) {
    // Options are checked first, because reading a large source takes long.
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
    // Throws for integers that no single type holds. It must come before the first write.
    declaration = try idType.declaration(of: options.member, in: found)
    let (records, duplicates) = try Self.records(of: found, idType, options)
    self.duplicates = duplicates
    let contents = StoreContents(records: records, commit: 0, horizon: 0)
    loading = try RecordLoading(contents, from: source, to: target, isDry: options.isDry, progress)
  }

  /// Number of records in each commit of a new store.
  private static let batchSize = 4_096

  private static func records(
    of found: [ImportedRecord], _ type: IDType, _ options: Options
  ) throws(RepositoryError) -> ([StoredRecord], duplicates: [String]) {
    // `kept` has the order of the source, so that errors and commits do not depend on the order of a dictionary.
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
      // The list goes to the terminal and into logs, so it has the hash of the key and not the key.
      duplicates.append("\(places) [key \(key)]")
      if options.duplicates == .last { kept[other].source = record }
    }
    var records: [StoredRecord] = []
    for (index, (key, source)) in kept.enumerated() {
      let value = source.value.json
      // The backend checks few of these rules, and an app would not read a record that breaks them.
      if let problem = RecordRules.problem(key, value, json: source.value) {
        throw RepositoryError(.tooLarge, "\(source.line.map { "line \($0): " } ?? "")\(problem)", file: source.file, keyHash: key.hash)
      }
      // The draft of a new store ends its batches between revisions only. One revision for all would make a single batch of any size.
      records.append(
        StoredRecord(
          collection: options.collection, key: key, revision: Revision(UInt64(1 + index / batchSize)), schemaVersion: options.version,
          value: value))
    }
    return (records, duplicates)
  }

  /// Error that ended the writing after some records were committed.
  ///
  /// `nil` if there was none.
  package var failure: RepositoryError? { loading.failure }

  /// `.success`, or `.incomplete` if a failure ended the writing.
  package var status: ExitStatus { loading.status }

  /// Returns a line for each duplicate, the counts, and the declaration with which an app finds the records.
  package func lines(width: Int?) -> [String] { duplicates + loading.lines(width: width) + ["read them with \(declaration)"] }

  /// JSON object of ``RecordLoading``, with `duplicates` and `idType` added.
  package var json: JSONValue {
    var body = loading.json.objectValue ?? JSONObject()
    body["duplicates"] = JSONValue(duplicates.count)
    body["idType"] = JSONValue(idType.rawValue)
    return .object(body)
  }
}
