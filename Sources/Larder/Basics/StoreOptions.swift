/// The options for opening a store, each of which has a safe default.
///
/// By default one process opens the store, writes are durable, and damage is reported and not repaired silently. Change only the options
/// that your app needs:
///
/// ```swift
/// var options = StoreOptions()
/// options.checkpoint = .manual
/// options.limits.recordBytes = 1 << 20
/// let spots = try await LocalRepository<Spot>(jsonFile: url, options: options)
/// ```
///
/// Alternatively, pass the options that you need to the initializer of `StoreOptions`:
///
/// ```swift
/// let strict = StoreOptions(durability: .durable, keepsPreviousSnapshot: true, recovery: .strict)
/// let store = try await Store.open(JSONFileBackend(file: url), options: strict)
/// ```
///
/// Options apply to one opening of a store and are not stored in it, so the next opening may use other options.
///
/// ## Threads and processes
///
/// `StoreOptions` is a value type. Create options on any thread, actor or task, and use them for any number of openings. A store keeps its
/// own copy of the options, so a later change of your variable changes nothing in an open store.
///
/// Each process chooses its own store options. If several processes write one SQLite file, each of them must open it `.shared`. A
/// `.readOnly` opening is possible beside every other opening. The closure ``StoreOptions/Migration/progress`` is called on any thread.
///
/// ## When to use another type
///
/// - Pass `durability:` to a single write, as in ``LocalRepository/save(_:ifRevision:durability:)``, if only that write needs another
///   durability.
/// - Use ``RepositorySchema`` for the settings of one collection: its name, its version, its indexes and its migrations.
/// - Call ``LocalRepository/flush()`` or ``LocalRepository/checkpoint()`` at a moment that you choose, such as the end of an import.
///
/// ## Avoid
///
/// - Do not set ``durability`` to `.buffered` for data that cannot be fetched again. A power cut may lose the newest `.buffered` writes.
/// - Do not open a JSON file `.shared`. Opening a JSON file `.shared` throws `.unsupported`. Use `SQLiteBackend` of `LarderSQLite` for
///   several writing processes.
/// - Do not lower a limit below the size of your users' records. Records over a limit are kept in the store, but `find(by:)` throws for
///   these records, and `loadAll()` and queries leave them out.
/// - Do not choose `.strict` recovery without a plan for `.corrupted`. With `.strict`, even a crash during a write may prevent the store
///   from opening.
/// - Do not set ``pollInterval`` to `nil` in a reader that must follow a writer, unless you call ``Store/refresh()``.
/// - Do not wait or write to the store in ``StoreOptions/Migration/progress``, because the `progress` closure should return quickly.
///
/// ## Topics
///
/// ### Processes
///
/// - ``access-swift.property``
/// - ``pollInterval``
/// - ``lockTimeout``
/// - ``suspensionTimeout``
///
/// ### Writing
///
/// - ``durability``
/// - ``limits-swift.property``
/// - ``coding-swift.property``
/// - ``checkpoint-swift.property``
/// - ``keepsPreviousSnapshot``
///
/// ### Opening
///
/// - ``recovery-swift.property``
/// - ``indexing-swift.property``
/// - ``buildsAutomaticIndexes``
/// - ``residency``
/// - ``migration-swift.property``
public struct StoreOptions: Sendable {
  /// The other processes and openings that may use a store while it is open.
  public enum Access: Hashable, Sendable {
    /// One writer, by default: a second opening for writing throws `.alreadyOpen` in this process and `.locked` in another process.
    case exclusive
    /// The store is opened for reading only, and other processes may write to it meanwhile.
    ///
    /// A SQLite store follows the commits of other processes. A read shows each commit that is older than ``StoreOptions/pollInterval``
    /// plus the time of one check of the file. A read-only JSON store keeps showing the state that its files had when it was opened.
    case readOnly
    /// Several processes may write one store (SQLite only), if each of them opens it `.shared`.
    ///
    /// A write in a `.shared` store always sees the earlier commits of every process, so compare-and-set, `insert`, `update` and
    /// transactions work across processes. A read may miss the newest commits of other processes, as with `.readOnly`. Call `refresh()` to
    /// read the newest commits of other processes at once. Observers receive the commits of other processes, too. One process may open the
    /// store more than once, each time as `.shared`. Several openings of one store in one process behave like openings in separate
    /// processes.
    case shared
  }

  /// The size limits of records, which are checked when you save a record and when the store opens.
  public struct Limits: Hashable, Sendable {
    /// Largest encoded record, in bytes: 16 MiB by default, at most 1 GiB.
    public var recordBytes: Int {
      didSet { recordBytes = Self.clamp(recordBytes, to: Self.maximumRecordBytes) }
    }
    /// Longest encoded key, in bytes of UTF-8: 1 KiB by default, at most 64 KiB.
    public var keyBytes: Int {
      didSet { keyBytes = Self.clamp(keyBytes, to: Self.maximumKeyBytes) }
    }
    /// Deepest nesting of arrays and objects in a record: 64 by default, at most 128.
    ///
    /// The decoder recurses once for each level of nesting in a record, and a deep record would overflow the small stack of a thread on
    /// Darwin.
    public var jsonDepth: Int {
      didSet { jsonDepth = Self.clamp(jsonDepth, to: Self.maximumDepth) }
    }
    /// Number of tombstones of deleted records that are kept for readers that resume a feed of changes: 10,000 by default.
    ///
    /// When there are more tombstones than the limit `tombstones`, the store forgets the oldest tombstones.
    public var tombstones: Int {
      didSet { tombstones = Self.clamp(tombstones, to: .max) }
    }

    // The size of a record must fit in 32 bits, because readers and writers of files count its bytes in 32 bits.
    private static let (maximumRecordBytes, maximumKeyBytes) = (1 << 30, 64 << 10)
    // Decoders and migrations handle records of every store, so they apply `maximumDepth` and not the `jsonDepth` of one store.
    static let maximumDepth = 128

    private static func clamp(_ value: Int, to maximum: Int) -> Int { min(max(value, 0), maximum) }

    /// Makes size limits, where a value above its maximum becomes the maximum and a negative value becomes 0.
    ///
    /// If you set one of the limits later, a value above the maximum or below 0 is changed in the same way.
    public init(recordBytes: Int = 16 << 20, keyBytes: Int = 1 << 10, jsonDepth: Int = 64, tombstones: Int = 10_000) {
      // `didSet` does not run in an initialiser, so the initialiser clamps the limits, too.
      self.recordBytes = Self.clamp(recordBytes, to: Self.maximumRecordBytes)
      self.keyBytes = Self.clamp(keyBytes, to: Self.maximumKeyBytes)
      self.jsonDepth = Self.clamp(jsonDepth, to: Self.maximumDepth)
      self.tombstones = Self.clamp(tombstones, to: .max)
    }
  }

  /// The policy for checkpoints, which fold the journal into the main file.
  public struct Checkpoint: Hashable, Sendable {
    /// Time without a write after which a checkpoint runs, or `nil` if a pause in writing must cause no checkpoint.
    public var idle: Duration?
    /// Whether a checkpoint also runs when the backend's property ``StorageBackend/wantsCheckpoint`` is true.
    ///
    /// `wantsCheckpoint` is true if the journal is much larger than the data, or if the tombstones exceed their limit by far.
    public var bySize: Bool

    /// Makes a policy for checkpoints.
    public init(idle: Duration?, bySize: Bool) {
      self.idle = idle
      self.bySize = bySize
    }

    /// By default, a checkpoint runs after five seconds without a write, and when the journal or the tombstones have grown by far.
    ///
    /// The journal of a JSON store causes a checkpoint when it is larger than 4 MiB and larger than one and a half times the main file.
    /// Tombstones in SQLite and in memory cause a checkpoint when their number exceeds twice their limit plus 1,000. In a pause after a
    /// commit and on close, a large JSON file is rewritten only if it is at most twice as large as its journal, or if the oldest change in
    /// the journal is a day old.
    public static let automatic = Checkpoint(idle: .seconds(5), bySize: true)
    /// A checkpoint runs only for a call of ``LocalRepository/checkpoint()``, and on close if the journal is worth the rewrite.
    ///
    /// With `.manual`, SQLite still copies its log into the database after 1,000 pages, and on a full disk both backends make a checkpoint
    /// at once.
    public static let manual = Checkpoint(idle: nil, bySize: false)
  }

  /// The time at which the indexes that a schema declares are built.
  ///
  /// A unique index is always built when the repository is opened, unless the storage has it. See ``Residency/onDisk(cache:)``.
  public enum Indexing: Hashable, Sendable {
    /// By default, an index is built at the first query that needs it.
    case onFirstNeed
    /// Builds every index before the opening of a repository returns.
    case eager
  }

  /// The treatment of a journal or log that does not end with a whole commit.
  public enum Recovery: Hashable, Sendable {
    /// By default, opening cuts the bytes after the last whole commit, keeps them in a quarantine file, and reports the cut.
    case cutAndReport
    /// Opening throws `.corrupted` if the journal or log ends with an incomplete commit, even a provably torn write, and changes no file.
    case strict
  }

  /// The policy for records of an older schema version.
  ///
  /// With every migration policy, you can read the records of older versions at once.
  public struct Migration: Sendable {
    /// The time at which records of older versions are rewritten.
    public enum Mode: Hashable, Sendable {
      /// By default, records are rewritten in the background, in small batches between other writes.
      case lazy
      /// Rewrites records on every core before the opening of the repository returns.
      ///
      /// The opening also returns if a full disk, a failed sync or a failed copy ends the rewrite of old records early. If the rewrite ends
      /// early, ``MigrationProgress/error`` holds the error. A record that cannot be migrated does not end the rewrite.
      case eager
      /// Rewrites records when you call ``LocalRepository/finishMigration()``.
      ///
      /// Before that call, the mode `.manual` rewrites a record only when you save it.
      case manual
    }

    /// The setting whether Larder copies the store before it writes the first record of a newer version, by a rewrite or by a save.
    public enum Backup: Hashable, Sendable {
      /// By default, the store is copied to `<file>-before-<collection>-v<version>`, with the version that the migration leads to.
      ///
      /// If the file name of the copy would be too long, the part from the store's file name is shortened.
      ///
      /// Larder replaces the copy of an earlier migration run in one case only: if the earlier run ended before it rewrote a record, and an
      /// older app has written to the store since then. The next migration run then copies the newer state of the store, and the new copy
      /// replaces the earlier copy. Larder removes no other copy that it has made before a migration.
      ///
      /// If the copy fails, no record of the newer version is written, and saves throw the error of the copy. While the copy is made, all
      /// writes wait, also in other processes. Reads do not wait for the copy.
      case beforeFirstRewrite
      /// Makes no copy of the store before a migration.
      case declined
    }

    /// Time at which records of older versions are rewritten: in the background by default.
    public var mode: Mode
    /// Whether the store is copied before its first record is migrated: by default, the store is copied.
    public var backup: Backup
    /// Number of records that one commit of a migration rewrites: 256 by default, from 1 to 65,536.
    public var batchSize: Int {
      // With a batch of 0 records the migration would never end. The store commits at most 65,536 records together, unless a single write
      // has more records.
      didSet { batchSize = min(max(batchSize, 1), 65_536) }
    }
    /// A closure that is called after every batch of a migration and at its end, on any thread.
    ///
    /// The closure `progress` should return quickly, because the migration waits for it.
    public var progress: (@Sendable (MigrationProgress) -> Void)?

    /// Makes a policy for migrations.
    public init(
      mode: Mode = .lazy, backup: Backup = .beforeFirstRewrite, batchSize: Int = 256,
      progress: (@Sendable (MigrationProgress) -> Void)? = nil
    ) {
      self.mode = mode
      self.backup = backup
      // `didSet` does not run in an initialiser, so the initialiser clamps the batch size, too.
      self.batchSize = min(max(batchSize, 1), 65_536)
      self.progress = progress
    }
  }

  /// The coder that turns values into JSON and back.
  public enum Coding: Hashable, Sendable {
    /// By default, Larder's own coder is used, which writes the same bytes as Foundation's encoder in a third of the time.
    ///
    /// Unlike Foundation's encoder, Larder's coder sorts sets, and dictionaries whose JSON is an array, so that equal values have equal
    /// bytes. Foundation's encoder writes the elements of sets, and of dictionaries whose JSON is an array, in another order at each
    /// launch.
    ///
    /// Larder's decoder always reads the whole record. Larder's decoder throws for a record that is damaged anywhere or holds text that is
    /// not Unicode, even if the record's type would not read the damaged part. Larder's decoder reads an integer that is written with a
    /// fraction or an exponent exactly, or throws.
    case larder
    /// Foundation's `JSONEncoder` and `JSONDecoder` are used, for a test whether Larder's coder causes a problem.
    ///
    /// Larder's coder reads stores that Foundation's encoder has written, and Foundation's decoder reads stores that Larder's coder has
    /// written.
    case foundation
  }

  /// Other processes and openings that may use the store while it is open: none by default.
  public var access: Access
  /// Durability of each write that passes no durability of its own: by default a write is still stored after power loss.
  public var durability: Durability
  /// Size limits of records, and the number of tombstones to keep.
  public var limits: Limits
  /// Policy for folding the journal into the main file: by default in a pause, and when the journal outgrows the data.
  public var checkpoint: Checkpoint
  /// Whether the previous version of the main file is kept as the file `…-previous`: not by default (JSON files only).
  public var keepsPreviousSnapshot: Bool
  /// Treatment of a journal or log that does not end with a whole commit: by default its unfinished end is cut and reported.
  public var recovery: Recovery
  /// Time at which indexes are built: by default at the first query that needs them.
  public var indexing: Indexing
  /// Whether a query that sorts many records without an index leaves an automatic index behind: by default it does.
  ///
  /// The queries of a repository and its live results do so if they have no condition and a limit of at most an eighth of the records, and
  /// sort by properties that are ``IndexableValue`` and stored in a struct. Larder builds the index in the background after the query.
  /// Later queries of this kind in the same order read the automatic index as they read a declared one, and
  /// ``LocalRepository/explain(_:)`` names it.
  ///
  /// A collection has at most four automatic indexes, and gets none while it has fewer than 10,000 records. An automatic index takes about
  /// the memory of a declared one. It is removed by ``LocalRepository/removeAutomaticIndexes()``, by a write of more than 10,000 records,
  /// and by more than 10,000 changes since its last use.
  public var buildsAutomaticIndexes: Bool
  /// Place from which the open store reads its records: memory by default.
  ///
  /// With ``Residency/onDisk(cache:)`` the records stay in the storage. ``RepositorySchema/residency`` sets another place for one
  /// collection.
  public var residency: Residency
  /// Interval at which a `.shared` or `.readOnly` store checks for commits of other processes: 500 ms by default, at least 10 ms.
  ///
  /// If `pollInterval` is `nil`, the store checks for commits of other processes only when it writes and when you call `refresh()`. A check
  /// that finds no commit takes some ten microseconds.
  public var pollInterval: Duration?
  /// Time for which a `.shared` store waits for writes of other processes before it throws `.locked`: 30 s by default.
  ///
  /// If the wait exceeds 30 s, another process has most likely stopped in the middle of a write, for example in a debugger.
  public var lockTimeout: Duration
  /// Time for which a write waits in a suspended store before it throws `.suspended`: 30 s by default.
  ///
  /// If `suspensionTimeout` is `.zero`, a write in a suspended store throws at once. The time during which the system has stopped the
  /// process counts as waiting time, too, unless the device slept.
  public var suspensionTimeout: Duration
  /// Policy for records of an older schema version: rewritten in the background by default, after a copy was made.
  public var migration: Migration
  /// Coder that turns values into JSON and back: Larder's own coder by default.
  public var coding: Coding

  /// Makes store options, whose defaults open a store for one writing process with durable writes.
  public init(
    access: Access = .exclusive, durability: Durability = .durable, limits: Limits = .init(),
    checkpoint: Checkpoint = .automatic, keepsPreviousSnapshot: Bool = false, recovery: Recovery = .cutAndReport,
    indexing: Indexing = .onFirstNeed, buildsAutomaticIndexes: Bool = true, residency: Residency = .full,
    pollInterval: Duration? = .milliseconds(500), lockTimeout: Duration = .seconds(30),
    suspensionTimeout: Duration = .seconds(30), migration: Migration = .init(),
    coding: Coding = .larder
  ) {
    self.access = access
    self.durability = durability
    self.limits = limits
    self.checkpoint = checkpoint
    self.keepsPreviousSnapshot = keepsPreviousSnapshot
    self.recovery = recovery
    self.indexing = indexing
    self.buildsAutomaticIndexes = buildsAutomaticIndexes
    self.residency = residency
    self.pollInterval = pollInterval
    self.lockTimeout = lockTimeout
    self.suspensionTimeout = suspensionTimeout
    self.migration = migration
    self.coding = coding
  }
}

/// The kinds of failure, such as a power cut, after which a write whose call has returned is still stored.
///
/// A `.durable` write costs one sync of the disk, and writes that arrive together share one sync. An `.ordered` write costs a barrier on
/// Apple platforms, which takes a fraction of the time of a sync, and costs a sync elsewhere. A `.buffered` write mostly costs no sync.
/// ``LocalRepository/flush()`` makes all earlier writes durable at once.
///
/// ```swift
/// for reading in readings { try await sensors.save(reading, durability: .buffered) }
/// try await sensors.flush()
/// ```
public enum Durability: Hashable, Sendable {
  /// By default, a write is still stored after power loss (Linux `fdatasync`, Darwin `F_FULLFSYNC`, SQLite WAL `synchronous=FULL`).
  case durable
  /// A write is still stored after a crash of the operating system.
  ///
  /// A power cut may lose the newest `.ordered` writes, always whole writes and the newest first.
  ///
  /// On Darwin an `.ordered` write uses `F_BARRIERFSYNC`. The barrier passes the write to the drive before every later write, and does not
  /// wait until the drive's cache is on the medium. Systems other than Darwin have no call like `F_BARRIERFSYNC`, so `.ordered` writes are
  /// `.durable` on them.
  case ordered
  /// A write is still stored after a crash of the process.
  ///
  /// A power cut may lose the newest `.buffered` writes, always whole writes and the newest first.
  case buffered
}

extension Durability {
  /// Returns the stronger of two durabilities.
  func combined(with other: Durability) -> Durability {
    // A write with the stronger durability is also still stored after every failure that the weaker durability covers.
    if self == .durable || other == .durable { return .durable }
    return self == .ordered || other == .ordered ? .ordered : .buffered
  }
}
