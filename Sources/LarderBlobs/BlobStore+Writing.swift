public import Foundation
public import Larder
internal import Synchronization

extension BlobStore {
  /// Stores bytes for a key, in place of those that it has.
  ///
  /// Returns when they are durable: a crash leaves the old blob or the new one, whole. What is removed to make room is gone then too.
  ///
  /// - Throws: `.tooLarge` for more than the disk limit, `.invalidKey`, `.full` or `.inputOutput` (nothing has changed, nothing is left).
  ///   `.cancelled`, also when the key was removed or the store cleared meanwhile. `.suspended` and `.dataMissing` as ``suspend()`` and
  ///   ``resume()`` say. `.outcomeUnknown`, `.poisoned`, `.closed`.
  public nonisolated(nonsending) func save(_ data: Data, for key: String) async throws(RepositoryError) {
    let writer = try await writer(for: key)
    try await writer.write(data)
    try await writer.finish()
  }

  /// Stores the bytes of a sequence for a key, chunk by chunk as they come, in place of those that it has.
  ///
  /// Memory holds one chunk, and at most 16 MiB of what came before it. When the sequence throws or the task is cancelled, nothing is
  /// left.
  ///
  /// - Throws: what the sequence throws; otherwise as ``save(_:for:)``.
  public nonisolated(nonsending) func save<Failure: Error>(
    _ chunks: some AsyncSequence<Data, Failure>, for key: String
  ) async throws {
    let writer = try await writer(for: key)
    do {
      for try await chunk in chunks { try await writer.write(chunk) }
    } catch {
      await writer.abort()
      throw error
    }
    try await writer.finish()
  }

  /// Begins to write a blob; nothing is visible before ``BlobWriter/finish()``.
  ///
  /// If the key is removed or the store cleared after this call, `finish` throws `.cancelled`: what was begun before cannot come back
  /// after.
  ///
  /// When the store is closed, the write is over: what there is of it is removed, and the writer throws `.closed`.
  ///
  /// - Throws: `.invalidKey`, `.closed`, `.poisoned`.
  public func writer(for key: String) throws(RepositoryError) -> BlobWriter {
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    let ticket = WriteTicket(try Self.id(of: key))
    tickets.removeAll { $0.ticket == nil }
    // The writer of a suspended store waits before it makes its file.
    if !suspension.isActive { try index.checkWritable() }
    tickets.append(WeakTicket(ticket: ticket))
    return BlobWriter(self, key: key, ticket)
  }

  /// Removes the blob of a key from memory and disk.
  ///
  /// Writes of this key that have begun and not returned store nothing.
  /// - Returns: Whether there was one.
  /// - Throws: `.invalidKey`, `.cancelled`, `.suspended`, `.full` or `.inputOutput` (nothing has changed), `.outcomeUnknown`, `.poisoned`,
  ///   `.closed`.
  @discardableResult
  public func remove(_ key: String) async throws(RepositoryError) -> Bool {
    let id = try Self.id(of: key)
    try await takeTurn()
    defer { changes.release() }
    try index.checkWritable()
    for entry in tickets where entry.ticket?.id == id { entry.ticket?.end(.removed) }
    guard let entry = try index.snapshot.find(by: id) else { return false }
    try await index.delete(id)
    forget([entry])
    return true
  }

  /// Removes every blob from memory and disk.
  ///
  /// Writes that have begun and not returned store nothing. Files go first, so that this works on a full disk; if it throws, some blobs
  /// may be gone and the others are whole.
  /// - Throws: `.cancelled`, `.suspended`, `.full`, `.inputOutput`, `.outcomeUnknown`, `.poisoned`, `.closed`.
  public func clear() async throws(RepositoryError) {
    try await takeTurn()
    defer { changes.release() }
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    try index.checkWritable()
    for entry in tickets { entry.ticket?.end(.removed) }
    let entries = index.snapshot.loadAll()
    for entry in entries { try files.clear(BlobFiles.name(entry)) }
    memory.withLock { $0.removeAll() }
    try await index.replaceAll(with: [], discardingUndecodable: true)
    forget(entries)
  }
}
