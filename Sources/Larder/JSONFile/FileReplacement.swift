/// The replacement of a file: a new file is written under a temporary name and then renamed over the old file.
///
/// A durable replacement takes these steps in order: write the new file, sync it, call ``rename()``, sync the directory. The rename is
/// atomic, so a crash leaves either the old file or the complete new file. The next opening of the store removes a temporary file that a
/// crash has left.
struct FileReplacement: Sendable {
  /// Suffix that the path of a temporary file has.
  static let suffix = "-tmp"

  /// Path of the old file, which the new file has after the rename.
  let path: String
  let fileSystem: any FileSystem
  /// True if ``write(like:_:)`` throws when the system refuses to set the data protection class, as a locked device does.
  var requiresAttributes = true

  /// Temporary path of the new file, until the rename.
  var temporary: String { path + Self.suffix }

  /// Creates the new file under its temporary name, and calls `body` to write the contents.
  ///
  /// If `body` or an earlier step throws, the temporary file is removed.
  ///
  /// - Parameters:
  ///   - original: Main file whose owner and attributes the new file gets, or `nil` to set neither.
  ///   - body: Closure that writes the new file and syncs it.
  func write<Output>(
    like original: MainFile?, _ body: (any OpenFile) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    // A crash may have left a temporary file, and `create` fails if a file with the temporary name exists.
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      // The data protection class is set before the first byte is written, so that no contents of a protected store are ever unprotected on
      // the disk.
      do throws(RepositoryError) { try original?.passOn(to: file) } catch {
        if requiresAttributes || error.code != .protectedDataUnavailable { throw error }
      }
      return try body(file)
    } catch {
      // An unfinished temporary file is removed, because on a full disk other writes need its space.
      discard(file)
      throw error
    }
  }

  /// Renames the new file from its temporary path over the old file, atomically.
  ///
  /// The rename is durable only after the directory was synced.
  func rename() throws(RepositoryError) { try fileSystem.rename(temporary, to: path) }

  /// Closes and removes the temporary file.
  ///
  /// `discard(_:)` ignores errors, because its callers throw an earlier error or do not need the temporary file any more. If the temporary
  /// file could not be removed, the next opening of the store removes it.
  func discard(_ file: (any OpenFile)? = nil) {
    do throws(RepositoryError) { try file?.close() } catch {}
    do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
  }
}
