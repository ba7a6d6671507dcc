/// The failures that a write survives once its call has returned.
///
/// A `.durable` write costs one sync of the disk, which writes that arrive together share. A `.buffered` one mostly costs none, and
/// ``LocalRepository/flush()`` makes all earlier writes durable at once.
///
/// ```swift
/// for reading in readings { try await sensors.save(reading, durability: .buffered) }
/// try await sensors.flush()
/// ```
public enum Durability: Hashable, Sendable {
  /// Survives power loss (Linux `fdatasync`, Darwin `F_FULLFSYNC`, SQLite WAL with `synchronous=FULL`). The default.
  case durable
  /// Survives a crash of the process; a power cut may take the newest buffered writes, always whole and newest first.
  case buffered
}
