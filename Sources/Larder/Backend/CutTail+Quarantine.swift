extension OpenReport.CutTail {
  /// Renames the file with the bytes cut from a journal to its lasting name, durably, and sets ``quarantineFile`` to that name.
  ///
  /// A backend first writes the cut bytes to a file whose name marks the cut as not reported yet. The next open reports a cut again if its
  /// file still has the unreported name. Call this function when opening cannot fail any more. After an earlier call, a failed open would
  /// lose the report of the cut. If an earlier cut at the same offset already has the lasting name, the new file gets a number: `…-2`, up
  /// to `…-999`. If the rename fails, the bytes stay in the file with the unreported name, and ``quarantineFile`` holds that name.
  ///
  /// - Parameters:
  ///   - unreported: Path of the file that now holds the cut bytes. If no file has this path, the function does nothing.
  ///   - fileSystem: The file system in which the file is renamed.
  public mutating func settleQuarantine(from unreported: String, in fileSystem: any FileSystem) {
    do throws(RepositoryError) {
      guard !quarantineFile.isEmpty, try fileSystem.status(of: unreported) != nil else { return }
      var (name, number) = (quarantineFile, 2)
      // A file of an earlier cut at the same offset may have the name already, and the rename would replace that file.
      while try fileSystem.status(of: name) != nil, number < 1_000 { (name, number) = ("\(quarantineFile)-\(number)", number + 1) }
      try fileSystem.rename(unreported, to: name)
      // `quarantineFile` is set before the folder is synced: if that sync fails, the file already has this name.
      quarantineFile = name
      try fileSystem.syncDirectory(PathText.parent(of: name))
    } catch {
      // An error of the rename or of the folder's sync loses no cut bytes. If the file with the cut bytes still has the unreported name,
      // the next open only reports the cut once more.
      do throws(RepositoryError) {
        if try fileSystem.status(of: unreported) != nil { quarantineFile = unreported }
      } catch {}
    }
  }
}
