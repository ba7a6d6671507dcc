#if arch(arm64_32) || arch(arm) || arch(i386) || arch(wasm32)
  /// A time of a message: milliseconds since 1970, as `Int64`, because `Int` has 32 bits on this system.
  public typealias SyncMilliseconds = Int64
#else
  /// A time of a message: milliseconds since 1970.
  ///
  /// This is `Int`. On Apple Watch, where `Int` may have 32 bits, it is `Int64`: the milliseconds since 1970 have 41.
  public typealias SyncMilliseconds = Int
#endif
