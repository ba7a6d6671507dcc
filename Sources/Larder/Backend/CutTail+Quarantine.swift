extension OpenReport.CutTail {
  /// Gives the bytes that were cut their lasting name, durably, and takes over that name as ``quarantineFile``.
  ///
  /// A backend first writes them under a name that says that the cut has not been reported yet, and calls this when opening cannot fail any
  /// more: until then the next open reports the cut again. A name that is taken, because the file was torn at the same place before, gets a
  /// number: `…-2`, up to `…-999`. When the file cannot be renamed, the bytes stay under the unreported name, which is then named here.
  ///
  /// - Parameters:
  ///   - unreported: The path of the bytes now. Does nothing when there is no such file.
  ///   - fileSystem: The file system that has both names.
  public mutating func settleQuarantine(from unreported: String, in fileSystem: any FileSystem) {
    do throws(RepositoryError) {
      guard !quarantineFile.isEmpty, try fileSystem.status(of: unreported) != nil else { return }
      var (name, number) = (quarantineFile, 2)
      while try fileSystem.status(of: name) != nil, number < 1_000 { (name, number) = ("\(quarantineFile)-\(number)", number + 1) }
      try fileSystem.rename(unreported, to: name)
      quarantineFile = name
      try fileSystem.syncDirectory(PathText.parent(of: name))
    } catch {
      // The bytes are kept. That the cut may be reported once more does no harm.
      do throws(RepositoryError) {
        if try fileSystem.status(of: unreported) != nil { quarantineFile = unreported }
      } catch {}
    }
  }
}
