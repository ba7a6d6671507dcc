internal import Synchronization

/// The committed changes of a repository in order, for as long as it is open; see ``LocalRepository/changes(since:)``.
///
/// ```swift
/// for try await set in spots.changes() {
///   for change in set.changes { print(change.id, change.kind) }
/// }
/// ```
///
/// The first iterator begins at the moment in which the sequence was made, so that nothing is lost before its first `next`. Another one
/// begins when it is made, or at the revision that was given. Iterators share nothing; each has one reader.
///
/// A reader that is slow loses no record: changes of one record merge, and commits in between become one set. The sequence ends when the
/// store is closed, and when the task is cancelled.
///
/// ## Cost
///
/// A buffer holds at most one change for each record that has changed since the last `next`. A write pays for each reader of its
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
  /// One commit's changes, or several that were merged.
  public typealias Element = ChangeSet<Item>
  /// The error that the first `next` throws when the changes since a revision are no longer known.
  public typealias Failure = RepositoryError

  private let source: ChangeSource
  private let coder: RecordCoder<Item>

  init(_ core: StoreCore, _ collection: Int, _ coder: RecordCoder<Item>, since: Revision?) {
    source = ChangeSource(core, collection, since: since)
    self.coder = coder
  }

  /// The commit up to which readers have been told: every change up to it was given to them, or waits in their buffers.
  ///
  /// A write returns when it is durable and can be read, and its observers are told just after that: when `save` returns a revision, this
  /// may still be less.
  public var revision: Revision { source.revision }

  /// Returns an iterator that records changes from now on; the first one has recorded them since the sequence was made.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source.take(), coder) }

  /// An iterator over change sets, for one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// One commit's changes, or several that were merged.
    public typealias Element = ChangeSet<Item>
    /// The error that the first `next` throws when the changes since a revision are no longer known.
    public typealias Failure = RepositoryError

    let feed: ChangeFeed
    private var resume: ChangeSource.Resume?
    private let coder: RecordCoder<Item>
    private var given: Revision

    init(_ start: ChangeSource.Start, _ coder: RecordCoder<Item>) {
      (feed, resume, given) = (start.feed, start.resume, start.begin)
      self.coder = coder
    }

    /// The commit up to which every change was given by `next`; at first, where the iterator begins.
    ///
    /// It is never less than the ``ChangeSet/revision`` of the last set, and grows with the commits of other collections too.
    public var revision: Revision { resume == nil ? Swift.max(given, feed.toldRevision ?? given) : given }

    /// Returns the next change set as soon as there is one.
    ///
    /// It is `nil` when the store was closed and everything was delivered, and when the task is cancelled. A cancelled call loses nothing.
    /// - Throws: `.unsupported`, from the first call only, when the feed cannot be resumed from its revision: reload everything.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(RepositoryError) -> ChangeSet<Item>? {
      if let resume {
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

/// The start of the iterators of a sequence.
///
/// It does not keep the store open.
final class ChangeSource: Sendable {
  struct Start: Sendable {
    let feed: ChangeFeed
    let resume: Resume?
    /// The revision after which the reader is told.
    let begin: Revision
  }

  /// The changes that a resuming reader gets first: captured when it begins, merged when it asks.
  struct Resume: Sendable {
    let collection: Int
    let since: Revision
    let commit: Revision
    let records: RecordMap
    /// The deletions since; `nil` when they are not known any more.
    let deletions: [RecordKey: Revision]?
    let horizon: Revision
  }

  private weak let core: StoreCore?
  private let collection: Int
  private let since: Revision?
  /// The start that the first iterator takes.
  private let first: Mutex<Start?>
  private let begin: Revision
  private let progress: ChangeProgress

  /// The commit up to which the readers have been told.
  var revision: Revision { Swift.max(begin, progress.revision) }

  init(_ core: StoreCore, _ collection: Int, since: Revision?) {
    self.core = core
    self.collection = collection
    self.since = since
    let start = Self.start(core, collection, since: since)
    begin = start.begin
    progress = core.hub.progress
    first = Mutex(start)
  }

  func take() -> Start {
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
    core.hub.register(feed, for: collection)
    let state = core.state
    let commit = Revision(state.commit)
    feed.begin(after: commit)
    guard let since else { return Start(feed: feed, resume: nil, begin: commit) }
    // Read after the state: a deletion is noted before it is published.
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
  /// Returns everything that changed since, in the order of commits.
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
    func note(_ key: RecordKey, _ revision: Revision, _ slot: RecordSlot?) {
      changes.append(
        .init(RecordChange(collection: collection, key: key, revision: revision, origin: .unknown, old: nil, new: slot), coder))
    }
    for slot in records.ordered() where slot.revision > since { note(slot.key, slot.revision, slot) }
    for (key, revision) in deletions where records[key] == nil { note(key, revision, nil) }
    return changes.sorted { $0.revision == $1.revision ? $0.key < $1.key : $0.revision < $1.revision }
  }
}
