internal import Foundation
public import Larder

/// Which call of a ``SimulatedFileSystem`` fails, how, and whether it goes on failing.
///
/// Steps are numbered from 1, changes and syncs apart from reads, so that a loop over the numbers until a run meets no fault covers every
/// call that a program makes: ``SimulatedFileSystem/operationCount`` and ``SimulatedFileSystem/readCount`` say how far it came.
public struct FaultPlan: Hashable, Sendable {
  /// The calls that are counted.
  public enum Step: Hashable, Sendable {
    /// The n-th call that changes or syncs something.
    case operation(Int)
    /// The n-th call that reads: open, size, mode, read, entries.
    case read(Int)
  }

  /// The call that fails.
  public var step: Step
  /// The `errno` that it fails with, such as ENOSPC, EIO or EACCES; the error's code follows from it as in the real file layer.
  public var errorNumber: Int32
  /// Whether every later call of its kind fails too.
  public var isPermanent: Bool
  /// How many bytes a write leaves behind when it fails; it may be more than the write has, which then leaves everything.
  public var writtenBytes: Int

  /// Plans a fault.
  public init(_ step: Step, errorNumber: Int32, isPermanent: Bool = false, writtenBytes: Int = 0) {
    self.step = step
    self.errorNumber = errorNumber
    self.isPermanent = isPermanent
    self.writtenBytes = writtenBytes
  }

  /// Plans a fault by the code of its error: `.full` is ENOSPC, `.protectedDataUnavailable` EACCES, everything else EIO.
  public init(_ step: Step, code: RepositoryError.Code, isPermanent: Bool = false, writtenBytes: Int = 0) {
    let number: Int32 = code == .full ? ENOSPC : code == .protectedDataUnavailable ? EACCES : EIO
    self.init(step, errorNumber: number, isPermanent: isPermanent, writtenBytes: writtenBytes)
  }

  func hitsOperation(_ number: Int) -> Bool {
    guard case .operation(let first) = step else { return false }
    return isPermanent ? number >= first : number == first
  }

  func hitsRead(_ number: Int) -> Bool {
    guard case .read(let first) = step else { return false }
    return isPermanent ? number >= first : number == first
  }
}
