#if canImport(Glibc)
  internal import Dispatch
  internal import Glibc
#endif

/// The memory that was freed and that the process still holds.
enum FreedMemory {
  /// The number of records from which a build leaves much behind.
  static let many = 10_000

  /// Gives whole free pages back to the system.
  ///
  /// A build frees more than it keeps, in the heaps of several threads, which glibc holds until the process ends. Other systems' allocators
  /// give pages back by themselves. Cost: in the background, time that grows with the heap of the process; some 14 ms where that is a
  /// store of 100,000 records.
  static func giveBack() {
    #if canImport(Glibc)
      DispatchQueue.global(qos: .utility).async {
        // Looked up, since the header that declares it is in no module.
        guard let address = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(address, to: (@convention(c) (Int) -> CInt).self)(0)
      }
    #endif
  }
}
