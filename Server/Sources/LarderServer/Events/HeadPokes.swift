/// Announcements of new commits between server processes.
///
/// They carry no data and may be lost.
protocol HeadPokes: Sendable {
  /// Announces a commit to the other processes, a moment later and outside of any transaction.
  func tell(_ head: Int, of scope: String)
  /// Calls `heard` for each announcement of another process, until `stopListening()`.
  func listen(_ heard: @escaping @Sendable (_ head: Int, _ scope: String) -> Void)
  /// Ends the calls of `heard`, without waiting for the thread that listens.
  func stopListening()
  /// Ends the threads, and blocks until they have ended, for two seconds each at most.
  func close()
}
