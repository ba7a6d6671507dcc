/// The signs between server processes that a scope has a newer commit; like all signs, they carry no data and may be lost.
protocol HeadPokes: Sendable {
  /// Tells the other processes, a moment later and outside of any transaction.
  func tell(_ head: Int, of scope: String)
  /// Hands out what other processes tell, until it is stopped.
  func listen(_ heard: @escaping @Sendable (_ head: Int, _ scope: String) -> Void)
  /// Hands out nothing any more; does not wait for the thread that listens.
  func stopListening()
  /// Ends the threads, and blocks until they have ended.
  func close()
}
