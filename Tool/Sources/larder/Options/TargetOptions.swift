internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Options that name the store to write.
struct TargetOptions: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The store to write.", valueName: "store"), completion: .file())
  var to: String

  @Option(name: .long, help: "The kind of a new store, `json` or `sqlite`; by default the ending of its name says it.")
  var kind: StoreKind?

  /// Returns a new store whose kind is that of `--kind`, of the name's ending, or of another store, in this order.
  func file(like source: StoreFile) throws(RepositoryError) -> StoreFile {
    // Without a known ending, a repaired copy gets the kind of the damaged store.
    guard let kind else { return StoreFile(newAt: to, like: source) }
    return try StoreFile(newAt: to, kind: kind)
  }
}

extension TargetOptions {
  /// Returns a new store whose kind is that of `--kind` or of the name's ending.
  func file() throws(RepositoryError) -> StoreFile { try StoreFile(newAt: to, kind: kind) }

  /// Returns the existing store at the path, or a new one if there is none.
  func fileOfLoading() throws(RepositoryError) -> StoreFile { try StoreFile.existingOrNew(at: to, kind: kind) }
}

extension StoreFile {
  /// Returns the existing store at a path, or a new one if there is none.
  static func existingOrNew(at path: String, kind: StoreKind?) throws(RepositoryError) -> StoreFile {
    do throws(RepositoryError) { return try StoreFile(path: path) } catch {
      // A damaged store or another program's file must not be treated as a new store.
      guard error.code == .dataMissing else { throw error }
      return try StoreFile(newAt: path, kind: kind)
    }
  }
}

extension StoreKind: ExpressibleByArgument {}
