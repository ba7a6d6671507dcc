/// A kind of crash.
public enum CrashKind: Hashable, Sendable {
  /// The power fails: what no sync covered may be lost, change by change and sector by sector.
  case powerLoss
  /// The process is killed: everything written is still there, unsynced, and the write in flight may have stopped at any byte.
  case processKill
}

/// One state that a crash can leave.
public struct CrashImage: Sendable {
  /// The files that a program finds after the crash.
  ///
  /// After a power loss all of it is durable; after a kill what was unsynced still is.
  public let fileSystem: SimulatedFileSystem
  /// The kind of crash.
  public let kind: CrashKind
  /// A description of the changes that were kept.
  public let summary: String
}
