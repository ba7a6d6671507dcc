internal import Foundation
internal import Larder

/// The one row of `larder_store`: the identity of the store, its newest commit, and the digest of all its records.
struct SQLiteStoreRow: Equatable {
  let id: UUID
  /// Text of the store's id in the row, kept so that a commit need not make the text again.
  private let idText: String
  var commit: UInt64 = 0
  /// Newest commit whose tombstones may have been deleted.
  var tombstonesSince: UInt64 = 0
  var records = 0
  var tombstones = 0
  /// Sum of a hash of every record and tombstone.
  ///
  /// By the digest, a scan detects a row that vanished, doubled or came back from an older page.
  var digest: UInt64 = 0
  /// Whether commits since the last checkpoint may have been buffered.
  ///
  /// The mark of buffered commits is durable before the first buffered commit. If the mark is set, recovery accepts a write-ahead log that
  /// lacks a commit before a later one, because a power cut may lose commits that were not synced.
  var isBuffered = false

  init(id: UUID) { (self.id, idText) = (id, id.uuidString) }

  /// Whether this row differs from an earlier row of `larder_store` only by deleted tombstones.
  ///
  /// Deleting tombstones changes no record and does not change the number of the newest commit.
  func hasForgotten(since earlier: SQLiteStoreRow) -> Bool {
    // The digest is not compared, because each deleted tombstone changes it.
    commit == earlier.commit && records == earlier.records && tombstones < earlier.tombstones && tombstonesSince > earlier.tombstonesSince
  }

  /// Upper half of the digest of all records, which a record's row can carry so that the row of `larder_store` need not be written.
  ///
  /// An upper half of 0 in the column `crc` means that the record's row carries no digest. A digest whose upper half is 0 is therefore
  /// written to `larder_store`.
  var carriedDigest: UInt32 { UInt32(truncatingIfNeeded: digest >> 32) }

  /// Adds a record or tombstone, given by the checksum of its row, to the digest of all records.
  mutating func add(_ crc: UInt32) { digest &+= Self.mixed(crc) }
  /// Removes a record or tombstone, given by the checksum of its row, from the digest of all records.
  mutating func subtract(_ crc: UInt32) { digest &-= Self.mixed(crc) }

  /// Returns a checksum spread over 64 bits (the finalizer of SplitMix64), so that two different sets of rows rarely have the same sum.
  private static func mixed(_ crc: UInt32) -> UInt64 {
    var hash = UInt64(crc) &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
    return hash ^ hash >> 31
  }

  /// CRC32C over the text of all other columns of the row of `larder_store`.
  private var checksum: Int64 {
    // The text has a separator between the columns, because without it the values "1" and "23" would give the same text as "12" and "3".
    let text = "\(idText)|\(commit)|\(tombstonesSince)|\(records)|\(tombstones)|\(digest)|\(isBuffered ? 1 : 0)"
    return Int64(RecordKey(text).withBytes { CRC32C.checksum($0) })
  }

  // MARK: The row in the file

  static let select = "SELECT id, commit_number, tombstones_since, records, tombstones, digest, buffered, crc FROM larder_store"
  static let insert = "INSERT INTO larder_store VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
  static let update = """
    UPDATE larder_store SET commit_number = ?2, tombstones_since = ?3, records = ?4, tombstones = ?5, digest = ?6, buffered = ?7, crc = ?8 \
    WHERE id = ?1
    """

  /// Changes the row before an ``update`` that leaves it as it was, so that SQLite writes the row's page.
  static let touch = "UPDATE larder_store SET commit_number = -1"

  /// Reads the row of `larder_store`, or throws `.corrupted` if the row is damaged.
  init(on connection: SQLiteConnection) throws(RepositoryError) {
    let statement = try connection.prepare(Self.select)
    guard try statement.step(), let id = UUID(uuidString: try statement.text(0)) else {
      throw connection.damaged("expected one row in larder_store, found none that can be read")
    }
    // The values of the other columns are not checked one by one, because the checksum covers all of them.
    self.init(id: id)
    var numbers: [Int64] = []
    for column: Int32 in 1...7 { numbers.append(try statement.integer(column)) }
    commit = UInt64(bitPattern: numbers[0])
    tombstonesSince = UInt64(bitPattern: numbers[1])
    records = Int(clamping: numbers[2])
    tombstones = Int(clamping: numbers[3])
    digest = UInt64(bitPattern: numbers[4])
    isBuffered = numbers[5] != 0
    let text = try statement.text(0)
    let isWhole = numbers[6] == checksum && numbers[0] >= 0 && text == idText
    // If `larder_store` had two rows, nothing would show which row belongs to the store, so a second row is damage.
    guard try !statement.step(), isWhole else {
      throw connection.damaged("expected one row with a correct checksum in larder_store, found other data")
    }
  }

  /// Binds all columns of the row to ``insert`` or ``update``.
  func bind(to statement: SQLiteStatement) throws(RepositoryError) {
    try statement.bind(idText, at: 1)
    try statement.bind(Int64(bitPattern: commit), at: 2)
    try statement.bind(Int64(bitPattern: tombstonesSince), at: 3)
    try statement.bind(Int64(records), at: 4)
    try statement.bind(Int64(tombstones), at: 5)
    try statement.bind(Int64(bitPattern: digest), at: 6)
    try statement.bind(isBuffered ? 1 : 0, at: 7)
    try statement.bind(checksum, at: 8)
  }
}

extension SQLiteConnection {
  /// Whether any record or tombstone has a revision above a commit.
  ///
  /// A record with a revision above the commit in the row of `larder_store` shows that the row is older than the newest commit.
  ///
  /// Cost: a scan of every table, some 0.3 µs a record.
  func hasRecords(after commit: UInt64) throws(RepositoryError) -> Bool {
    var tables = [SQLiteLayout.tombstones]
    // Another program may have created tables since the opening. The search skips tables of other programs, and the next opening checks
    // them.
    let schema = try prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
    while try schema.step() {
      let name = try schema.text(0)
      if SQLiteLayout.isCollectionName(name), try schema.text(1) == SQLiteLayout.createCollection(name) { tables.append(name) }
    }
    for table in tables {
      let statement = try prepare("SELECT 1 FROM \(SQLiteLayout.quoted(table)) WHERE revision > ?1 LIMIT 1")
      try statement.bind(Int64(bitPattern: commit), at: 1)
      if try statement.number() != nil { return true }
    }
    return false
  }
}

/// The column `crc` of a row: the record's checksum in the lower 32 bits, and half of the store's digest or 0 in the upper 32 bits.
struct SQLiteChecksum {
  let crc: UInt32
  /// Upper half of the store's digest after the commit that wrote the row, or 0 in a row that carries no digest.
  let digest: UInt32

  init(_ crc: UInt32, digest: UInt32 = 0) { (self.crc, self.digest) = (crc, digest) }

  init(column: Int64) { self.init(UInt32(truncatingIfNeeded: column), digest: UInt32(truncatingIfNeeded: column >> 32)) }

  var column: Int64 { Int64(bitPattern: UInt64(digest) << 32 | UInt64(crc)) }
}
