/// The failures that a write survives once its call has returned.
///
/// A `.durable` write costs one sync of the disk, which writes that arrive together share. An `.ordered` one costs a barrier on Apple
/// platforms, a fraction of that, and the same elsewhere. A `.buffered` one mostly costs none. ``LocalRepository/flush()`` makes all
/// earlier writes durable at once.
///
/// ```swift
/// for reading in readings { try await sensors.save(reading, durability: .buffered) }
/// try await sensors.flush()
/// ```
public enum Durability: Hashable, Sendable {
  /// Survives power loss (Linux `fdatasync`, Darwin `F_FULLFSYNC`, SQLite WAL with `synchronous=FULL`). The default.
  case durable
  /// Survives a crash of the system. A power cut may take the newest ordered writes, always whole and newest first.
  ///
  /// Darwin: `F_BARRIERFSYNC`, which hands the write to the drive before every later one, and does not wait until the drive's cache is on
  /// the medium. No other system has such a call, and there it is `.durable`.
  case ordered
  /// Survives a crash of the process; a power cut may take the newest buffered writes, always whole and newest first.
  case buffered
}

extension Durability {
  /// Returns the level that survives what either of two survives.
  func combined(with other: Durability) -> Durability {
    if self == .durable || other == .durable { return .durable }
    return self == .ordered || other == .ordered ? .ordered : .buffered
  }
}
