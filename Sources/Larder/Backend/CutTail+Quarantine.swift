extension OpenReport.CutTail {
  /// Durably renames the file that holds the bytes cut from a journal to its final name, and sets ``quarantineFile`` to that name.
  ///
  /// A backend first writes the cut bytes to a file whose name marks the cut as not reported yet. The next opening of the store reports a
  /// cut again if the file with the cut bytes still has the unreported name. Call `settleQuarantine` only once the opening of the store can
  /// no longer fail. If the file was renamed before an opening that fails, no opening would report the cut. If the file of an earlier cut
  /// at the same offset already has the final name, the new file's name gets the first free number: `…-2`, `…-3` and so on. If the
  /// rename fails, the cut bytes stay in the file with the unreported name, and ``quarantineFile`` holds the unreported name.
  ///
  /// - Parameters:
  ///   - unreported: Path of the file that now holds the cut bytes. If no file exists at `unreported`, `settleQuarantine` does nothing.
  ///   - fileSystem: The file system in which the file is renamed.
  public mutating func settleQuarantine(from unreported: String, in fileSystem: any FileSystem) {
    do throws(RepositoryError) {
      guard !quarantineFile.isEmpty, try fileSystem.status(of: unreported) != nil else { return }
      var (name, number) = (quarantineFile, 2)
      // The quarantine file of an earlier cut at the same offset may already have the final name, and the rename would replace that file.
      while try fileSystem.status(of: name) != nil { (name, number) = ("\(quarantineFile)-\(number)", number + 1) }
      try fileSystem.rename(unreported, to: name)
      // `quarantineFile` is set before the folder is synced, because the file has its new name even if the sync of the folder fails.
      quarantineFile = name
      try fileSystem.syncDirectory(PathText.parent(of: name))
    } catch {
      // An error of the rename or of the folder's sync loses no cut bytes. If the file with the cut bytes still has the unreported name,
      // the next opening of the store only reports the cut once more.
      do throws(RepositoryError) {
        if try fileSystem.status(of: unreported) != nil { quarantineFile = unreported }
      } catch {}
    }
  }
}
