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
/// Options hold for one opening and are not stored, so the next opening may choose others.
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
/// - ``migration-swift.property``
public struct StoreOptions: Sendable {
  /// The other users that a store may have while it is open.
  public enum Access: Hashable, Sendable {
    /// One writer: a second open for writing throws `.alreadyOpen` in this process and `.locked` in another. The default.
    case exclusive
    /// Reads beside writers in other processes, and never writes.
    ///
    /// A SQLite store follows foreign commits: a read shows each commit that is older than ``StoreOptions/pollInterval`` and the time of
    /// one look at the file. A JSON file shows the state found at open.
    case readOnly
    /// Several processes write one store (SQLite only), each of them with this access.
    ///
    /// A write always sees the commits that every process has made before it: compare-and-set, `insert`, `update` and transactions hold
    /// across processes. A read is behind as `.readOnly` says, and you can call `refresh()` to catch up at once. Foreign commits are
    /// announced to observers. One process may open the store more than once, each time as `.shared`. Several openings in one process
    /// behave like separate processes.
    case shared
  }

  /// The size limits of records, which are checked when you save and when the store opens.
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
    /// A decoded type recurses with its record, and a deep record would overflow the small stack of a thread on Darwin.
    public var jsonDepth: Int {
      didSet { jsonDepth = Self.clamp(jsonDepth, to: Self.maximumDepth) }
    }
    /// Number of tombstones of deleted records that are kept for readers that resume: 10,000 by default.
    ///
    /// Older tombstones are forgotten.
    public var tombstones: Int {
      didSet { tombstones = Self.clamp(tombstones, to: .max) }
    }

    // Readers and writers count the bytes of a record in 32 bits.
    private static let (maximumRecordBytes, maximumKeyBytes) = (1 << 30, 64 << 10)
    // Decoders and migrations take records of every store, so they go by this limit and not by an option.
    static let maximumDepth = 128

    private static func clamp(_ value: Int, to maximum: Int) -> Int { min(max(value, 0), maximum) }

    /// Makes limits, of which a value above its maximum is lowered to it and a negative one becomes 0.
    ///
    /// Setting a property does the same.
    public init(recordBytes: Int = 16 << 20, keyBytes: Int = 1 << 10, jsonDepth: Int = 64, tombstones: Int = 10_000) {
      // Observers do not run in an initialiser, so the values are clamped here too.
      self.recordBytes = Self.clamp(recordBytes, to: Self.maximumRecordBytes)
      self.keyBytes = Self.clamp(keyBytes, to: Self.maximumKeyBytes)
      self.jsonDepth = Self.clamp(jsonDepth, to: Self.maximumDepth)
      self.tombstones = Self.clamp(tombstones, to: .max)
    }
  }

  /// The policy for checkpoints, which fold the journal into the main file.
  public struct Checkpoint: Hashable, Sendable {
    /// Time without a write after which a checkpoint runs, or `nil` for never.
    public var idle: Duration?
    /// Whether a checkpoint also runs when the backend asks for it, because its journal is much larger than its data, or tombstones exceed
    /// their limit by far.
    public var bySize: Bool

    /// Makes a policy.
    public init(idle: Duration?, bySize: Bool) {
      self.idle = idle
      self.bySize = bySize
    }

    /// A checkpoint after five seconds without a write, and when the journal is larger than one and a half times the data or the tombstones
    /// are more than twice their limit and a thousand.
    ///
    /// The default. A large JSON file is rewritten in a pause after a commit, or on close, and only when its journal is worth that or a
    /// change in it is a day old.
    public static let automatic = Checkpoint(idle: .seconds(5), bySize: true)
    /// No checkpoint but those of ``LocalRepository/checkpoint()``, and one on close if that is worth the rewrite.
    ///
    /// SQLite still folds its log after 1,000 pages, and on a full disk either backend folds at once.
    public static let manual = Checkpoint(idle: nil, bySize: false)
  }

  /// The time at which declared indexes are built.
  ///
  /// Unique indexes are always built when the repository is opened.
  public enum Indexing: Hashable, Sendable {
    /// At the first query that needs them. The default.
    case onFirstNeed
    /// Before opening a repository returns.
    case eager
  }

  /// The treatment of a journal or log that does not end with a whole commit.
  public enum Recovery: Hashable, Sendable {
    /// Cuts the bytes after the last whole commit, keeps them in a quarantine file, and reports it. The default.
    case cutAndReport
    /// Refuses to open with `.corrupted`, even if the end is provably a torn write, and leaves the files as they are.
    case strict
  }

  /// The policy for records of an older schema version.
  ///
  /// You can read these records at once with every policy.
  public struct Migration: Sendable {
    /// The time at which older records are rewritten.
    public enum Mode: Hashable, Sendable {
      /// In the background, in small batches between other writes. The default.
      case lazy
      /// Before opening returns, on every core. Opening also returns if a full disk, a failed sync or a failed copy ends the rewrite early:
      /// see the progress. A record that cannot be migrated ends nothing.
      case eager
      /// When you call ``LocalRepository/finishMigration()``. Until then only records that you save anyway are rewritten.
      case manual
    }

    /// The choice whether the store is copied before the first record of a newer version is written, by a rewrite or by a save.
    public enum Backup: Hashable, Sendable {
      /// Copies the store to `<file>-before-<collection>-v<version>`, with the version that the migration leads to. The default.
      ///
      /// If the name of the copy would be too long, the file's name in it is shortened.
      ///
      /// Nothing removes a copy, with one exception: a copy that holds more replaces it after a run that was ended before its first record.
      ///
      /// If the copy fails, nothing of the newer version is written, and saves throw the error of the copy. Writes wait while the copy is
      /// made, those of other processes too. Reads do not wait.
      case beforeFirstRewrite
      /// Makes no copy.
      case declined
    }

    /// Time at which older records are rewritten: in the background by default.
    public var mode: Mode
    /// Whether the store is copied first: by default it is.
    public var backup: Backup
    /// Number of records that one commit rewrites: 256 by default, from 1 to 65,536.
    public var batchSize: Int {
      // Without a record in a batch the rewrite would never end. A group of commits takes at most 65,536 records.
      didSet { batchSize = min(max(batchSize, 1), 65_536) }
    }
    /// A closure that is called after every batch and at the end, on any thread.
    ///
    /// It should be quick.
    public var progress: (@Sendable (MigrationProgress) -> Void)?

    /// Makes a policy.
    public init(
      mode: Mode = .lazy, backup: Backup = .beforeFirstRewrite, batchSize: Int = 256,
      progress: (@Sendable (MigrationProgress) -> Void)? = nil
    ) {
      self.mode = mode
      self.backup = backup
      // Observers do not run in an initialiser, so the value is clamped here too.
      self.batchSize = min(max(batchSize, 1), 65_536)
      self.progress = progress
    }
  }

  /// The coder that turns values into JSON and back.
  public enum Coding: Hashable, Sendable {
    /// Larder's own coder, which writes the same bytes as Foundation's in a third of the time. The default.
    ///
    /// It sorts sets, and dictionaries that become arrays, so that equal values have equal bytes. Foundation's encoder writes them in
    /// another order at each launch.
    ///
    /// It reads whole records only. A record that is damaged anywhere, or holds text that is not Unicode, does not decode, even if the type
    /// would not look there. An integer with a fraction or an exponent is read exactly or not at all.
    case larder
    /// Foundation's `JSONEncoder` and `JSONDecoder`. Use it to rule Larder's coder out as a cause. Each reads the stores of the other.
    case foundation
  }

  /// Other users that the store may have while it is open: none by default.
  public var access: Access
  /// Durability of a write that names none: power loss survived by default.
  public var durability: Durability
  /// Size limits of records.
  public var limits: Limits
  /// Policy for folding the journal into the main file: in a pause, and when the journal outgrows the data.
  public var checkpoint: Checkpoint
  /// Whether the main file's previous generation is kept beside it as `…-previous`: not by default (JSON files only).
  public var keepsPreviousSnapshot: Bool
  /// Treatment of a journal or log that does not end with a whole commit: it is cut and reported by default.
  public var recovery: Recovery
  /// Time at which indexes are built: at first need by default.
  public var indexing: Indexing
  /// Interval at which a `.shared` or `.readOnly` store looks for foreign commits: 500 ms by default, at least 10 ms.
  ///
  /// With `nil` it looks only at its own writes and when you call `refresh()`. A look that finds nothing takes some ten microseconds.
  public var pollInterval: Duration?
  /// Time for which a `.shared` store waits for foreign writes before it throws `.locked`: 30 s by default.
  ///
  /// Longer waits mean that another process holds the store in the middle of a write, as one that was stopped by a debugger does.
  public var lockTimeout: Duration
  /// Time for which a write waits in a suspended store before it throws `.suspended`: 30 s by default.
  ///
  /// With `.zero` it throws at once. A process that the system has stopped counts that time too, unless the device slept.
  public var suspensionTimeout: Duration
  /// Policy for records of an older schema version: rewritten in the background by default, after a copy was made.
  public var migration: Migration
  /// Coder of values as JSON: Larder's own by default.
  public var coding: Coding

  /// Makes options, by default those of an exclusive, durable store.
  public init(
    access: Access = .exclusive, durability: Durability = .durable, limits: Limits = .init(),
    checkpoint: Checkpoint = .automatic, keepsPreviousSnapshot: Bool = false, recovery: Recovery = .cutAndReport,
    indexing: Indexing = .onFirstNeed, pollInterval: Duration? = .milliseconds(500), lockTimeout: Duration = .seconds(30),
    suspensionTimeout: Duration = .seconds(30), migration: Migration = .init(), coding: Coding = .larder
  ) {
    self.access = access
    self.durability = durability
    self.limits = limits
    self.checkpoint = checkpoint
    self.keepsPreviousSnapshot = keepsPreviousSnapshot
    self.recovery = recovery
    self.indexing = indexing
    self.pollInterval = pollInterval
    self.lockTimeout = lockTimeout
    self.suspensionTimeout = suspensionTimeout
    self.migration = migration
    self.coding = coding
  }
}

/// The failures that a write survives once its call has returned.
///
/// A `.durable` write costs one sync of the disk, which writes that arrive together share. An `.ordered` one costs a barrier on Apple
/// platforms, a fraction of that, and the same elsewhere. A `.buffered` one mostly costs none. ``LocalRepository/flush()`` makes all
/// earlier writes durable at once.
///
/// ```swift
/// for reading in readings { try await sensors.save(reading, durability: .buffered) }
/// try await sensors.flush()
/// ```
public enum Durability: Hashable, Sendable {
  /// Survives power loss (Linux `fdatasync`, Darwin `F_FULLFSYNC`, SQLite WAL with `synchronous=FULL`). The default.
  case durable
  /// Survives a crash of the system. A power cut may take the newest ordered writes, always whole and newest first.
  ///
  /// Darwin: `F_BARRIERFSYNC`, which hands the write to the drive before every later one, and does not wait until the drive's cache is on
  /// the medium. No other system has such a call, and there it is `.durable`.
  case ordered
  /// Survives a crash of the process. A power cut may take the newest buffered writes, always whole and newest first.
  case buffered
}

extension Durability {
  /// Returns the level that survives every failure that one of the two survives.
  func combined(with other: Durability) -> Durability {
    // The levels are ordered, so the stronger of two covers both.
    if self == .durable || other == .durable { return .durable }
    return self == .ordered || other == .ordered ? .ordered : .buffered
  }
}
