public import Foundation
public import Larder
internal import Synchronization

extension BlobStore {
  /// Stores bytes for a key, and replaces the blob that the key has.
  ///
  /// `save` returns when the bytes are durable, and when blobs over the limits were removed. After a crash during a save, the key has its
  /// whole old blob or its whole new blob.
  ///
  /// - Throws: `.tooLarge` for more bytes than the disk limit, and `.full` or `.inputOutput`. After one of these three errors no blob has
  ///   changed, and no file is left. `.cancelled` if the task was cancelled, the key removed or the store cleared meanwhile. See the
  ///   article Errors of Larder.
  public nonisolated(nonsending) func save(_ data: Data, for key: String) async throws(RepositoryError) {
    let writer = try await writer(for: key)
    try await writer.write(data)
    try await writer.finish()
  }

  /// Stores the bytes of a sequence for a key chunk by chunk, and replaces the blob that the key has.
  ///
  /// Use this method for a body that does not fit into memory. Memory holds one chunk, and at most 16 MiB of earlier chunks. If the
  /// sequence throws or the task is cancelled, no file is left.
  ///
  /// - Throws: The error of the sequence, or the errors of ``save(_:for:)``.
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

  /// Returns a writer of a blob, which reads can find after ``BlobWriter/finish()``.
  ///
  /// Call `writer(for:)` before you start a download. If the key is removed or the store cleared after the call of `writer(for:)`, `finish`
  /// throws `.cancelled`, so that old bytes cannot come back.
  ///
  /// Closing the store ends the write and removes its file. The writer then throws `.closed`.
  ///
  /// - Throws: `.invalidKey`, `.closed`, `.poisoned`.
  public func writer(for key: String) throws(RepositoryError) -> BlobWriter {
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    let ticket = WriteTicket(try Self.id(of: key))
    tickets.removeAll { $0.ticket == nil }
    // `checkWritable()` would throw in a suspended store. A writer of a suspended store calls `checkWritable()` later: after `resume()`,
    // and before the writer creates its file.
    if !suspension.isActive { try index.checkWritable() }
    tickets.append(WeakTicket(ticket: ticket))
    return BlobWriter(self, key: key, ticket)
  }

  /// Removes the blob of a key from memory and disk.
  ///
  /// Writes of the same key that have begun and not returned store nothing.
  /// - Returns: True if there was a blob.
  /// - Throws: `.full` or `.inputOutput`, after which no blob has changed. `.cancelled` or `.suspended`. See the article Errors of Larder.
  @discardableResult
  public func remove(_ key: String) async throws(RepositoryError) -> Bool {
    let id = try Self.id(of: key)
    try await takeTurn()
    defer { changes.release() }
    try index.checkWritable()
    // The unfinished writes of the key end even if the key has no blob yet, because a write that began before the removal must not store a
    // blob after it.
    for entry in tickets where entry.ticket?.id == id { entry.ticket?.end(.removed) }
    guard let entry = try index.snapshot.find(by: id) else { return false }
    // The index entry is deleted before the file, so that a crash between the two leaves a file without an entry, and never an entry
    // without a file.
    try await index.delete(id)
    forget([entry])
    return true
  }

  /// Removes every blob from memory and disk.
  ///
  /// Writes that have begun and not returned when `clear()` runs store nothing. Files are removed before their index entries, so `clear()`
  /// works on a full disk. If `clear()` throws, some blobs may be gone, and the others are whole.
  /// - Throws: `.inputOutput` or `.full`, `.cancelled`, `.suspended`. See the article Errors of Larder.
  public func clear() async throws(RepositoryError) {
    try await takeTurn()
    defer { changes.release() }
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    try index.checkWritable()
    for entry in tickets { entry.ticket?.end(.removed) }
    let entries = index.snapshot.loadAll()
    // The blob files are removed before the index is emptied. On a full disk, the removal of the files frees the space that the commit of
    // the empty index needs.
    for entry in entries { try files.clear(BlobFiles.name(entry)) }
    memory.withLock { $0.removeAll() }
    try await index.replaceAll(with: [], discardingUndecodable: true)
    forget(entries)
  }
}
