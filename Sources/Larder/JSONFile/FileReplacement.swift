/// A file that is written under a temporary name, and then takes the place of the one that has its name.
///
/// The steps of a durable replacement: write, sync, ``rename()``, and a sync of the directory, in this order. Until the rename the old
/// file is untouched, and the rename is atomic, so a crash leaves the old file or the new one. A temporary file that a crash leaves is
/// removed by the next opening of the store.
struct FileReplacement: Sendable {
  /// The ending of temporary names.
  static let suffix = "-tmp"

  /// The name that the file will have.
  let path: String
  let fileSystem: any FileSystem
  /// Whether a file that the system refuses its class of protection, as a locked device does, is given up.
  var requiresAttributes = true

  /// The name under which the file is written.
  var temporary: String { path + Self.suffix }

  /// Creates the file under its temporary name and lets it be written; removes it again when that fails.
  ///
  /// - Parameters:
  ///   - original: The main file whose owner and attributes the file is given, if any.
  ///   - body: Writes the file and syncs it.
  func write<Output>(
    like original: MainFile?, _ body: (any OpenFile) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      do throws(RepositoryError) { try original?.passOn(to: file) } catch {
        if requiresAttributes || error.code != .protectedDataUnavailable { throw error }
      }
      return try body(file)
    } catch {
      discard(file)
      throw error
    }
  }

  /// Puts the file into place: atomically, and durably once the directory is synced.
  func rename() throws(RepositoryError) { try fileSystem.rename(temporary, to: path) }

  /// Closes and removes a file that is not wanted.
  ///
  /// Something else has failed already, or the result is unused; a temporary file that stays is removed by the next open.
  func discard(_ file: (any OpenFile)? = nil) {
    do throws(RepositoryError) { try file?.close() } catch {}
    do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
  }
}
