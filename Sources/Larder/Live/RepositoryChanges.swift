internal import Synchronization

/// An asynchronous sequence of the committed changes of a repository, in the order of commits.
///
/// ```swift
/// for try await set in spots.changes() {
///   for change in set.changes { print(change.id, change.kind) }
/// }
/// ```
///
/// Call ``LocalRepository/changes(since:)`` to get a sequence of changes. In a view, use ``LiveQuery`` instead of a sequence.
///
/// The first iterator of the sequence records changes from the creation of the sequence on, so that no change is lost before the first call
/// of `next`. Every further iterator of the sequence records changes from its own creation on, or from the revision that was passed to
/// ``LocalRepository/changes(since:)``. Each iterator has a buffer of its own, and only one task at a time may read an iterator.
///
/// A slow reader still receives the newest state of each changed record: the buffer merges several changes of one record into one change,
/// and several commits into one change set. The sequence ends when the store is closed, and when the reading task is cancelled.
///
/// ## Cost
///
/// The buffer of an iterator holds at most one change for each record that has changed since the last call of `next`. Each iterator of a
/// collection's changes adds some time to every write to that collection.
///
/// ## Topics
///
/// ### Reading
/// - ``makeAsyncIterator()``
/// - ``AsyncIterator``
/// - ``ChangeSet``
///
/// ### Resuming
/// - ``revision``
public struct RepositoryChanges<Item: Codable & Identifiable & Sendable>: AsyncSequence, Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// Changes of one commit, or of several commits that were merged.
  public typealias Element = ChangeSet<Item>
  /// Error that the first call of `next` throws if the sequence cannot resume from the given revision.
  public typealias Failure = RepositoryError

  private let source: ChangeSource
  private let coder: RecordCoder<Item>

  init(_ core: StoreCore, collection: Int, coder: RecordCoder<Item>, since: Revision?) {
    source = ChangeSource(core, collection, since: since)
    self.coder = coder
  }

  /// Newest commit whose changes were delivered to all readers of the sequence, or wait in the buffers of the readers.
  ///
  /// A write returns when its records are durable and can be read, and observers receive the write's changes just after that. Just after a
  /// write, `revision` may thus be less than the revision that `save` has returned.
  public var revision: Revision { source.revision }

  /// Returns an iterator of the sequence that records changes from now on.
  ///
  /// The first iterator has recorded changes since the sequence was created. If the sequence resumes from a revision, every iterator begins
  /// with the changes since that revision.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source.take(), coder) }

  /// An iterator that returns change sets to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Changes of one commit, or of several commits that were merged.
    public typealias Element = ChangeSet<Item>
    /// Error that the first call of `next` throws if the sequence cannot resume from the given revision.
    public typealias Failure = RepositoryError

    let feed: ChangeFeed
    private var resume: ChangeSource.Resume?
    private let coder: RecordCoder<Item>
    private var given: Revision

    init(_ start: ChangeSource.Start, _ coder: RecordCoder<Item>) {
      (feed, resume, given) = (start.feed, start.resume, start.begin)
      self.coder = coder
    }

    /// Newest commit up to which `next` has returned every change, or before the first call the commit at which the iterator begins.
    ///
    /// The iterator's `revision` is never less than the ``ChangeSet/revision`` of the last set that `next` has returned. The iterator's
    /// `revision` also grows with commits to other collections.
    public var revision: Revision { resume == nil ? Swift.max(given, feed.toldRevision ?? given) : given }

    /// Returns the next change set as soon as there is one.
    ///
    /// Returns `nil` when the store was closed and every change was delivered, and when the task is cancelled. A call of `next` that is
    /// cancelled loses no change.
    /// - Throws: `.unsupported`, from the first call only, if the sequence cannot resume from the given revision. After `.unsupported`,
    ///   load all records again.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(RepositoryError) -> ChangeSet<Item>? {
      if let resume {
        // Cancellation is checked before `resume` is set to `nil`, so that a cancelled call of `next` does not lose the changes from which
        // the sequence resumes.
        if Task.isCancelled { return nil }
        self.resume = nil
        let changes = try await resume.changes(coder)
        given = resume.commit
        if !changes.isEmpty { return ChangeSet(revision: resume.commit, changes: changes) }
      }
      guard let set = await feed.next() else { return nil }
      given = set.revision
      return ChangeSet(revision: set.revision, changes: set.changes.map { ChangeSet.Change($0, coder) })
    }
  }
}

/// A factory for the iterators of a sequence of changes, which does not keep the store open.
final class ChangeSource: Sendable {
  struct Start: Sendable {
    let feed: ChangeFeed
    let resume: Resume?
    /// Revision after which the reader receives changes.
    let begin: Revision
  }

  /// Records and deletions from which the first change set of a resuming reader is made, at its first call of `next`.
  struct Resume: Sendable {
    let collection: Int
    let since: Revision
    let commit: Revision
    let records: RecordMap
    /// Deletions since the revision `since`, or `nil` if the tombstones of some of these deletions may have been dropped.
    let deletions: [RecordKey: Revision]?
    let horizon: Revision
  }

  private weak let core: StoreCore?
  private let collection: Int
  private let since: Revision?
  /// Start of the first iterator, with a feed (a buffer of changes) that is already registered, or `nil` once that iterator was created.
  private let first: Mutex<Start?>
  private let begin: Revision
  private let progress: ChangeProgress

  /// Newest commit that was announced to the readers of the sequence of changes.
  var revision: Revision { Swift.max(begin, progress.revision) }

  init(_ core: StoreCore, _ collection: Int, since: Revision?) {
    self.core = core
    self.collection = collection
    self.since = since
    // The feed (the buffer of changes) of the first iterator is registered at once, so that no change is lost before that iterator is
    // created.
    let start = Self.start(core, collection, since: since)
    begin = start.begin
    progress = core.hub.progress
    first = Mutex(start)
  }

  func take() -> Start {
    // A feed (a buffer of changes) has one reader, so the first iterator takes the registered feed and every later iterator gets a new one.
    let taken = first.withLock { first in
      defer { first = nil }
      return first
    }
    return taken ?? Self.start(core, collection, since: since)
  }

  private static func start(_ core: StoreCore?, _ collection: Int, since: Revision?) -> Start {
    let feed = ChangeFeed()
    guard let core else {
      feed.finish()
      return Start(feed: feed, resume: nil, begin: since ?? .zero)
    }
    // The feed (the buffer of changes) is registered before the store's state is read, so that every commit is in that state or in the
    // feed.
    core.hub.register(feed, for: collection)
    let state = core.state
    let commit = Revision(state.commit)
    feed.begin(after: commit)
    guard let since else { return Start(feed: feed, resume: nil, begin: commit) }
    // The deletions are read after the store's state. The hub's deletion log gets the deletions of a commit before the commit is published,
    // so the log has all deletions up to that state.
    let (deletions, horizon) = core.hub.deletions(in: collection, after: since, upTo: commit)
    return Start(
      feed: feed,
      resume: Resume(
        collection: collection, since: since, commit: commit, records: state.collections[collection].records, deletions: deletions,
        horizon: horizon),
      begin: since)
  }
}

extension ChangeSource.Resume {
  /// Returns all changes since the revision `since`, in the order of commits.
  ///
  /// Cost: linear in the records of the collection, and a sort of the changes. `changes(_:)` runs off the caller's actor.
  /// - Throws: `.unsupported` if the revision is after the store's newest commit, or if tombstones since that revision were dropped.
  @concurrent func changes<Item>(_ coder: RecordCoder<Item>) async throws(RepositoryError) -> [ChangeSet<Item>.Change] {
    guard since <= commit else {
      throw RepositoryError(
        .unsupported,
        "revision \(since) is after this store's newest commit \(commit), so it is another store's, or lost; load everything again")
    }
    guard let deletions else {
      throw RepositoryError(
        .unsupported,
        "deletions are known since revision \(horizon) only, so the changes since \(since) are not complete; load everything again")
    }
    var changes: [ChangeSet<Item>.Change] = []
    func note(_ key: RecordKey, revision: Revision, slot: RecordSlot?) {
      changes.append(
        .init(RecordChange(collection: collection, key: key, revision: revision, origin: .unknown, old: nil, new: slot), coder))
    }
    try records.visit { slot in
      if slot.revision > since { note(slot.key, revision: slot.revision, slot: slot) }
      return true
    }
    // The loop over `records` has already added the newest state of a record that was deleted and saved again, because that record is in
    // `records`.
    for (key, revision) in deletions where try records[key] == nil { note(key, revision: revision, slot: nil) }
    return changes.sorted { $0.revision == $1.revision ? $0.key < $1.key : $0.revision < $1.revision }
  }
}
