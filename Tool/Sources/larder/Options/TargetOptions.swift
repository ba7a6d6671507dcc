internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// The options of a store that is written.
struct TargetOptions: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The store to write.", valueName: "store"), completion: .file())
  var to: String

  @Option(name: .long, help: "The kind of a new store, `json` or `sqlite`; by default the ending of its name says it.")
  var kind: StoreKind?

  /// Returns the file of a new store: of the kind that is asked for, or that its name has, or of that of another store.
  func file(like source: StoreFile) throws(RepositoryError) -> StoreFile {
    guard let kind else { return StoreFile(newAt: to, like: source) }
    return try StoreFile(newAt: to, kind: kind)
  }
}

extension TargetOptions {
  /// Returns the file of a new store.
  func file() throws(RepositoryError) -> StoreFile { try StoreFile(newAt: to, kind: kind) }

  /// Returns the file of a store that is there, or of a new one.
  func fileOfLoading() throws(RepositoryError) -> StoreFile { try StoreFile.existingOrNew(at: to, kind: kind) }
}

extension StoreFile {
  /// Returns the file of a store that is there, or of a new one.
  static func existingOrNew(at path: String, kind: StoreKind?) throws(RepositoryError) -> StoreFile {
    do throws(RepositoryError) { return try StoreFile(path: path) } catch {
      guard error.code == .dataMissing else { throw error }
      return try StoreFile(newAt: path, kind: kind)
    }
  }
}

extension StoreKind: ExpressibleByArgument {}
