package import Larder

extension ProgressLine {
  /// Runs work that counts records by batches, and takes the line away when it has ended.
  package static func counting<Output>(
    _ label: String, _ work: ((Int) -> Void) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    let line = ProgressLine(label)
    defer { line.finish() }
    return try work { count in for _ in 0..<count { line.advance() } }
  }
}
