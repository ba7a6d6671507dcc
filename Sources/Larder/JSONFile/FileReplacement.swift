/// A file that is written under a temporary name and then renamed over the file that it replaces.
///
/// A durable replacement takes these steps in order: write, sync, ``rename()``, sync of the directory. Until the rename the old file is
/// untouched, and the rename is atomic, so a crash leaves the old file or the new one. The next opening of the store removes a temporary
/// file that a crash has left.
struct FileReplacement: Sendable {
  /// Suffix of temporary names.
  static let suffix = "-tmp"

  /// Path of the file after the rename.
  let path: String
  let fileSystem: any FileSystem
  /// True if ``write(like:_:)`` fails when the system refuses the file its protection class, as a locked device does.
  var requiresAttributes = true

  /// Path of the file until the rename.
  var temporary: String { path + Self.suffix }

  /// Creates the file under its temporary name and calls `body` to write it.
  ///
  /// Removes the temporary file if `body` or an earlier step throws.
  ///
  /// - Parameters:
  ///   - original: Main file whose owner and attributes the new file gets, if any.
  ///   - body: Writes the file and syncs it.
  func write<Output>(
    like original: MainFile?, _ body: (any OpenFile) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    // A crash may have left a temporary file, and `create` fails if a file with the temporary name exists.
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      // The protection class is set before the first byte is written, so that contents of a protected store are never on the disk without
      // it.
      do throws(RepositoryError) { try original?.passOn(to: file) } catch {
        if requiresAttributes || error.code != .protectedDataUnavailable { throw error }
      }
      return try body(file)
    } catch {
      // The unfinished file is removed, because on a full disk other writes need its space.
      discard(file)
      throw error
    }
  }

  /// Renames the temporary file over the old file, atomically.
  ///
  /// The rename is durable only after a sync of the directory.
  func rename() throws(RepositoryError) { try fileSystem.rename(temporary, to: path) }

  /// Closes and removes the temporary file.
  ///
  /// Errors are ignored: the caller throws an earlier error, or the temporary file is not needed any more. The next opening of the store
  /// removes a temporary file that stays.
  func discard(_ file: (any OpenFile)? = nil) {
    do throws(RepositoryError) { try file?.close() } catch {}
    do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
  }
}
