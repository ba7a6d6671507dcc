internal import Synchronization

/// An asynchronous sequence of the committed changes of a repository, in the order of commits.
///
/// ```swift
/// for try await set in spots.changes() {
///   for change in set.changes { print(change.id, change.kind) }
/// }
/// ```
///
/// You get it from ``LocalRepository/changes(since:)``. In a view, use ``LiveQuery``.
///
/// The first iterator records changes from the moment in which the sequence was created, so that nothing is lost before its first `next`.
/// Another iterator begins when it is created, or at the revision that was passed. Iterators share nothing, and each has one reader.
///
/// A slow reader loses no record: changes of one record merge, and the commits in between become one set. The sequence ends when the store
/// is closed, and when the task is cancelled.
///
/// ## Cost
///
/// A buffer holds at most one change for each record that has changed since the last `next`. A write takes some time for each reader of its
/// collection.
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
  /// Error that the first `next` throws if the changes since a revision are no longer known.
  public typealias Failure = RepositoryError

  private let source: ChangeSource
  private let coder: RecordCoder<Item>

  init(_ core: StoreCore, _ collection: Int, _ coder: RecordCoder<Item>, since: Revision?) {
    source = ChangeSource(core, collection, since: since)
    self.coder = coder
  }

  /// Newest commit whose changes were handed to all readers, or wait in their buffers.
  ///
  /// A write returns when it is durable and can be read, and observers receive it just after that. When `save` returns a revision, this
  /// property may still be less.
  public var revision: Revision { source.revision }

  /// Returns an iterator that records changes from now on.
  ///
  /// The first one has recorded them since the sequence was created.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source.take(), coder) }

  /// An iterator that returns change sets to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Changes of one commit, or of several commits that were merged.
    public typealias Element = ChangeSet<Item>
    /// Error that the first `next` throws if the changes since a revision are no longer known.
    public typealias Failure = RepositoryError

    let feed: ChangeFeed
    private var resume: ChangeSource.Resume?
    private let coder: RecordCoder<Item>
    private var given: Revision

    init(_ start: ChangeSource.Start, _ coder: RecordCoder<Item>) {
      (feed, resume, given) = (start.feed, start.resume, start.begin)
      self.coder = coder
    }

    /// Newest commit up to which `next` has returned every change, and before the first call the commit at which the iterator begins.
    ///
    /// It is never less than the ``ChangeSet/revision`` of the last set, and grows with the commits of other collections too.
    public var revision: Revision { resume == nil ? Swift.max(given, feed.toldRevision ?? given) : given }

    /// Returns the next change set as soon as there is one.
    ///
    /// Returns `nil` when the store was closed and everything was delivered, and when the task is cancelled. A cancelled call loses
    /// nothing.
    /// - Throws: `.unsupported`, from the first call only, if the sequence cannot resume from its revision. Load everything again.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(RepositoryError) -> ChangeSet<Item>? {
      if let resume {
        // Checked before `resume` is used up, so that a cancelled call loses no changes.
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

  /// Records and deletions from which the first set of a resuming reader is made, when the reader requests it.
  struct Resume: Sendable {
    let collection: Int
    let since: Revision
    let commit: Revision
    let records: RecordMap
    /// Deletions since the revision, or `nil` if some of them may have been forgotten.
    let deletions: [RecordKey: Revision]?
    let horizon: Revision
  }

  private weak let core: StoreCore?
  private let collection: Int
  private let since: Revision?
  /// Registered feed of the first iterator, which removes it from here when it begins.
  private let first: Mutex<Start?>
  private let begin: Revision
  private let progress: ChangeProgress

  /// Newest commit that was announced to the readers.
  var revision: Revision { Swift.max(begin, progress.revision) }

  init(_ core: StoreCore, _ collection: Int, since: Revision?) {
    self.core = core
    self.collection = collection
    self.since = since
    // The first feed is registered now, so that no change is lost between this call and the first iterator.
    let start = Self.start(core, collection, since: since)
    begin = start.begin
    progress = core.hub.progress
    first = Mutex(start)
  }

  func take() -> Start {
    // Later iterators begin by themselves: a feed has one reader.
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
    // Registered before the state is read, so that no commit falls between the two.
    core.hub.register(feed, for: collection)
    let state = core.state
    let commit = Revision(state.commit)
    feed.begin(after: commit)
    guard let since else { return Start(feed: feed, resume: nil, begin: commit) }
    // After the state was read. Deletions are noted before they are published, so all that led to this state are found.
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
  /// Returns all changes since the revision, in the order of commits.
  ///
  /// Cost: linear in the records, away from the caller's actor.
  /// - Throws: `.unsupported`.
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
    // A record that was deleted and saved again is in the records above.
    for (key, revision) in deletions where records[key] == nil { note(key, revision: revision, slot: nil) }
    return changes.sorted { $0.revision == $1.revision ? $0.key < $1.key : $0.revision < $1.revision }
  }
}
