public import Foundation

extension LocalRepository {
  /// Opens or creates a store in a JSON file, with this one repository in it.
  ///
  /// Missing directories are created, for their owner only. The store is this process's until ``close()``. A store that is refused is left
  /// as it was. Where recovering from a crash fails (`.inputOutput`, `.full`), nothing that was acknowledged is lost.
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`; `.unsupported` for options that a file cannot serve.
  public init(
    jsonFile: URL, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try await self.init(backend: JSONFileBackend(file: jsonFile), schema: schema, options: options)
  }

  /// Opens or creates a JSON store in the app's own directory of the platform's default place for data.
  ///
  /// On Linux that is `$XDG_DATA_HOME`, or `~/.local/share`, as the XDG Base Directory Specification says; elsewhere Application Support.
  /// The app's directory in it has the bundle's identifier, or the name of the process. The file name is one path component, such as
  /// "spots.json".
  /// - Throws: `.unsupported` for a name with a slash or one of dots only; otherwise as ``init(jsonFile:schema:options:)``.
  public init(
    filename: String, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    guard !filename.isEmpty, !filename.utf8.contains(0x2F), !filename.utf8.contains(0), filename != ".", filename != ".." else {
      throw RepositoryError(.unsupported, "a file name is one path component")
    }
    let file = DataDirectory.url().appendingPathComponent(filename, isDirectory: false)
    try await self.init(jsonFile: file, schema: schema, options: options)
  }
}
