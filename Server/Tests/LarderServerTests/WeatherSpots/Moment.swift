import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A moment that is chosen by chance: it is what is tested, and not a wait for something.
enum Moment {
  static func pass(_ seconds: Double) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        _ = poll(nil, 0, Int32(seconds * 1_000))
        continuation.resume()
      }
    }
  }
}
