public import Foundation
public import Larder

/// The right to run the pipeline of a store: one process has it, until it ends, however it ends.
///
/// Two pipelines on one store would ask twice and tell twice. A lock of the operating system goes with its process, so that a new one can
/// begin at once after a crash.
public struct AlertLock: Sendable {
  private let lock: any HeldLock

  /// Takes the right; never waits.
  ///
  /// - Parameter file: The store's file; the lock's lies beside it.
  /// - Throws: `.locked` when another process has it, `.alreadyOpen` when this one does.
  public init(beside file: URL) throws(RepositoryError) {
    lock = try POSIXFileSystem().lock(file.absoluteURL.path + "-alerts.lock")
  }

  /// Gives it up.
  public func release() { lock.release() }
}
