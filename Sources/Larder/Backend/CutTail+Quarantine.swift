extension OpenReport.CutTail {
  /// Renames the file with the bytes cut from a journal to its lasting name, durably, and sets ``quarantineFile`` to that name.
  ///
  /// A backend first writes the bytes under a name which says that the cut has not been reported yet. Call this when opening cannot fail
  /// any more: until then the next open reports the cut again. A name that is taken, because the file was torn at the same place before,
  /// gets a number: `…-2`, up to `…-999`. If the file cannot be renamed, the bytes stay under the unreported name, and
  /// ``quarantineFile`` names that one.
  ///
  /// - Parameters:
  ///   - unreported: Present path of the bytes. Without such a file the call does nothing.
  ///   - fileSystem: The file system that has both names.
  public mutating func settleQuarantine(from unreported: String, in fileSystem: any FileSystem) {
    do throws(RepositoryError) {
      guard !quarantineFile.isEmpty, try fileSystem.status(of: unreported) != nil else { return }
      var (name, number) = (quarantineFile, 2)
      // A rename would replace the bytes of an earlier cut at the same offset.
      while try fileSystem.status(of: name) != nil, number < 1_000 { (name, number) = ("\(quarantineFile)-\(number)", number + 1) }
      try fileSystem.rename(unreported, to: name)
      // Before the sync, which may fail: the file has this name already.
      quarantineFile = name
      try fileSystem.syncDirectory(PathText.parent(of: name))
    } catch {
      // The bytes are kept. To report the cut once more does no harm.
      do throws(RepositoryError) {
        if try fileSystem.status(of: unreported) != nil { quarantineFile = unreported }
      } catch {}
    }
  }
}
