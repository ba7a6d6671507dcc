package import Larder

extension ProgressLine {
  /// Runs work that reports batches of records, with a progress line that is removed at the end.
  package static func counting<Output>(
    _ label: String, _ work: ((Int) -> Void) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    let line = ProgressLine(label)
    defer { line.finish() }
    return try work { count in for _ in 0..<count { line.advance() } }
  }
}
