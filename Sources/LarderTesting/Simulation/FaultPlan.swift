internal import Foundation
public import Larder

/// A planned failure of a ``SimulatedFileSystem``: the call that fails, its error, and whether later calls fail too.
///
/// Steps are numbered from 1, changes and syncs apart from reads. A loop over the numbers until a run meets no fault covers every call
/// that a program makes; ``SimulatedFileSystem/operationCount`` and ``SimulatedFileSystem/readCount`` show how far it came.
public struct FaultPlan: Hashable, Sendable {
  /// The calls that are counted.
  public enum Step: Hashable, Sendable {
    /// The n-th call that changes or syncs something.
    case operation(Int)
    /// The n-th call that reads: open, status, size, mode, read, entries.
    case read(Int)
  }

  /// The call that fails.
  public var step: Step
  /// The `errno` that it fails with, such as ENOSPC, EIO or EACCES; the error's code follows from it as in the real file layer.
  public var errorNumber: Int32
  /// Whether every later call of its kind fails too.
  public var isPermanent: Bool
  /// The number of bytes that a failing write leaves behind; a number above its length leaves all of them.
  public var writtenBytes: Int
  /// Whether names whose sync fails are lost for later syncs too, as the bytes of a file are; by default they are.
  ///
  /// Local file systems journal names: they write them with the next sync, or take no more changes.
  public var abandonsNames = true

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

  /// Whether the plan hits a step.
  func hits(_ step: Step) -> Bool {
    switch (self.step, step) {
    case (.operation(let first), .operation(let number)), (.read(let first), .read(let number)):
      isPermanent ? number >= first : number == first
    default: false
    }
  }
}
