public import Foundation
public import Larder

/// An exclusive lock of the operating system that lets one process at a time run the alert pipeline of a store.
///
/// Two pipelines on one store would call the provider twice and deliver each notice twice. The operating system releases the lock when
/// its process ends, also after a crash, so that the next pipeline can start at once.
public struct AlertLock: Sendable {
  private let lock: any HeldLock

  /// Acquires the lock without waiting.
  ///
  /// - Parameter file: The store's file. The lock file is made beside it.
  /// - Throws: `.locked` if another process holds the lock, `.alreadyOpen` if this process does.
  public init(beside file: URL) throws(RepositoryError) {
    // A lock of its own, not the store's: other commands may open the store while a pipeline runs.
    // Absolute, so that processes with different working directories contend for one file.
    lock = try POSIXFileSystem().lock(file.absoluteURL.path + "-alerts.lock")
  }

  /// Releases the lock.
  public func release() { lock.release() }
}
