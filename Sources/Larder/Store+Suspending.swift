extension Store {
  /// Gives up every lock before the system stops the process, and keeps the store usable for reading.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call this when the app goes
  /// to the background, and ``resume()`` when it comes back; <doc:InAnXcodeApp> says where. In between another process may use the store.
  ///
  /// Reads, snapshots, live queries and observers go on with what is in memory. A write waits for ``resume()``, at most for
  /// ``StoreOptions/suspensionTimeout``, and then throws `.suspended`. What else needs the files throws it at once: `checkpoint`, `backup`,
  /// `flush`, `refresh`; `verify` reports it. A checkpoint that runs beside commits is given up, and nothing is lost with it.
  ///
  /// What was acknowledged is durable when this returns, buffered writes too. The second call does nothing, nor does one on a closed store.
  ///
  /// Cost: the writes that wait already, as far as one commit takes them, and some syncs. A backup or a verification that runs is waited
  /// for.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Takes the locks again, and takes in what other processes have committed since ``suspend()``.
  ///
  /// Observers are told of those commits, and the writes that wait go on after them. An exclusive store that another process has written is
  /// read anew, and ``openReport`` then says what was found. The call does nothing when the store is not suspended.
  ///
  /// Cost: some calls of the system. A `.shared` store also reads what was committed meanwhile, a store that is read anew everything.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another store of this one, has the file; `.dataMissing` when another
  ///   file, or an older copy, has taken the place of the store; otherwise as ``open(_:options:)``. The store stays suspended, and a later
  ///   call may succeed. `.poisoned` after a failed sync, `.closed`.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }
}

extension LocalRepository {
  /// Suspends the store of the repository, with all its repositories; see ``Store/suspend()``.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Resumes the store of the repository; see ``Store/resume()``.
  ///
  /// - Throws: as ``Store/resume()``.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }
}
