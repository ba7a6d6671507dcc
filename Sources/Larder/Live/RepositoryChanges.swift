internal import Synchronization

/// An asynchronous sequence of the committed changes of a repository, in the order of commits.
///
/// ```swift
/// for try await set in spots.changes() {
///   for change in set.changes { print(change.id, change.kind) }
/// }
/// ```
///
/// You get this sequence from ``LocalRepository/changes(since:)``. In a view, use ``LiveQuery``.
///
/// The first iterator records changes from the moment in which the sequence was created, so that no change is lost before its first `next`.
/// Every further iterator records changes from its own creation on, or from the revision that was passed to
/// ``LocalRepository/changes(since:)``. Each iterator has a buffer of its own, and only one task at a time may read an iterator.
///
/// A slow reader misses no changed record: several changes of one record are merged into one change, and the commits in between become one
/// set. The sequence ends when the store is closed, and when the task is cancelled.
///
/// ## Cost
///
/// The buffer of an iterator holds at most one change for each record that has changed since the last `next`. Each iterator of a collection
/// adds some time to every write to that collection.
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
  /// Error that the first `next` throws if the changes since a revision are no longer complete.
  public typealias Failure = RepositoryError

  private let source: ChangeSource
  private let coder: RecordCoder<Item>

  init(_ core: StoreCore, collection: Int, coder: RecordCoder<Item>, since: Revision?) {
    source = ChangeSource(core, collection, since: since)
    self.coder = coder
  }

  /// Newest commit whose changes were delivered to all readers, or wait in their buffers.
  ///
  /// A write returns when it is durable and can be read, and observers receive its changes just after that. Just after a write, this
  /// property may thus be less than the revision that `save` has returned.
  public var revision: Revision { source.revision }

  /// Returns an iterator that records changes from now on.
  ///
  /// The first iterator has recorded changes since the sequence was created.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source.take(), coder) }

  /// An iterator that returns change sets to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Changes of one commit, or of several commits that were merged.
    public typealias Element = ChangeSet<Item>
    /// Error that the first `next` throws if the changes since a revision are no longer complete.
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
    /// This revision is never less than the ``ChangeSet/revision`` of the last set. The revision also grows with commits to other
    /// collections.
    public var revision: Revision { resume == nil ? Swift.max(given, feed.toldRevision ?? given) : given }

    /// Returns the next change set as soon as there is one.
    ///
    /// Returns `nil` when the store was closed and every change was delivered, and when the task is cancelled. A cancelled call loses no
    /// change.
    /// - Throws: `.unsupported`, from the first call only, if the sequence cannot resume from its revision. If the sequence cannot resume,
    ///   load all records again.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(RepositoryError) -> ChangeSet<Item>? {
      if let resume {
        // Cancellation is checked before `resume` is set to `nil`, so that a cancelled call does not lose the changes since the revision.
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
    /// Deletions since the revision `since`, or `nil` if the tombstones of some of these deletions may have been forgotten.
    let deletions: [RecordKey: Revision]?
    let horizon: Revision
  }

  private weak let core: StoreCore?
  private let collection: Int
  private let since: Revision?
  /// Start of the first iterator, with a feed that is already registered, or `nil` once that iterator was created.
  private let first: Mutex<Start?>
  private let begin: Revision
  private let progress: ChangeProgress

  /// Newest commit that was announced to the readers of this sequence.
  var revision: Revision { Swift.max(begin, progress.revision) }

  init(_ core: StoreCore, _ collection: Int, since: Revision?) {
    self.core = core
    self.collection = collection
    self.since = since
    // The feed of the first iterator is registered now, so that no change is lost before that iterator is created.
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
    // The feed is registered before the state is read, so that a commit between the two is either in the state or in the feed.
    core.hub.register(feed, for: collection)
    let state = core.state
    let commit = Revision(state.commit)
    feed.begin(after: commit)
    guard let since else { return Start(feed: feed, resume: nil, begin: commit) }
    // The deletions are read after the state. Deletions are noted in the hub before their commit is published, so all deletions up to this
    // state are found.
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
  /// Cost: linear in the records of the collection. The work runs away from the caller's actor.
  /// - Throws: `.unsupported` if the revision is not one of this store, or if tombstones since that revision were forgotten.
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
    for slot in records.ordered() where slot.revision > since { note(slot.key, revision: slot.revision, slot: slot) }
    // A record that was deleted and saved again is in `records`, and the loop above has noted its newest state.
    for (key, revision) in deletions where records[key] == nil { note(key, revision: revision, slot: nil) }
    return changes.sorted { $0.revision == $1.revision ? $0.key < $1.key : $0.revision < $1.revision }
  }
}
