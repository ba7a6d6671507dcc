/// A part of Larder that reads bytes from outside, as a function of bytes.
///
/// It throws where Larder breaks a promise, and it traps or is stopped by the sanitizer where Larder does worse.
public struct FuzzTarget: Sendable {
  /// The name, which its corpus has too.
  public let name: String
  /// The length of the longest input that is worth trying.
  public let maximumLength: Int
  /// Tries one input.
  /// - Throws: ``BrokenPromise``.
  public let run: @Sendable (UnsafeRawBufferPointer) throws -> Void

  init(_ name: String, maximumLength: Int, _ run: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) {
    (self.name, self.maximumLength, self.run) = (name, maximumLength, run)
  }

  /// All targets.
  public static let all: [FuzzTarget] = [
    FuzzTarget("json-decoding", maximumLength: 512, JSONDecodingTarget.run),
    FuzzTarget("json-encoding", maximumLength: 512, JSONEncodingTarget.run),
    FuzzTarget("journal", maximumLength: 1_024, JournalTarget.run),
    FuzzTarget("main-file", maximumLength: 2_048, MainFileTarget.run),
    FuzzTarget("recovery", maximumLength: 256, RecoveryTarget.run),
    FuzzTarget("sqlite", maximumLength: 256, SQLiteTarget.run),
    FuzzTarget("queries", maximumLength: 256, QueryTarget.run),
    FuzzTarget("text", maximumLength: 512, TextTarget.run),
    FuzzTarget("keys", maximumLength: 256, KeyTarget.run),
    FuzzTarget("csv", maximumLength: 1_024, CSVTarget.run),
    FuzzTarget("open-meteo", maximumLength: 1_280, OpenMeteoTarget.run),
    FuzzTarget("weatherkit", maximumLength: 1_280, WeatherKitTarget.run),
    FuzzTarget("sync-server", maximumLength: 512, SyncServerTarget.run),
  ]

  /// Returns the target of a name; `nil` when there is none.
  public static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}
