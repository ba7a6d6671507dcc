#if canImport(Glibc)
  internal import Glibc
#endif

/// The memory that was freed and that the process still holds.
enum FreedMemory {
  /// The number of records from which a build leaves much behind.
  static let many = 10_000

  /// Gives whole free pages back to the system.
  ///
  /// A build frees more than it keeps, in the heaps of several threads, which glibc holds until the process ends. Other systems' allocators
  /// give pages back by themselves. Cost: some milliseconds after a build over 100,000 records.
  static func giveBack() {
    #if canImport(Glibc)
      // Looked up, since the header that declares it is in no module.
      guard let address = dlsym(nil, "malloc_trim") else { return }
      _ = unsafeBitCast(address, to: (@convention(c) (Int) -> CInt).self)(0)
    #endif
  }
}
