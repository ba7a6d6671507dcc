internal import Foundation
internal import Larder

/// The one row of `larder_store`: the identity of the store, its newest commit, and the digest of all its records.
struct SQLiteStoreRow: Equatable {
  let id: UUID
  /// Text of the id as it is stored, made once instead of for every commit.
  private let idText: String
  var commit: UInt64 = 0
  /// Commit up to which tombstones may have been deleted.
  var tombstonesSince: UInt64 = 0
  var records = 0
  var tombstones = 0
  /// Sum of a hash of every record and tombstone, which reveals a row that vanished, doubled or came back from an older page.
  var digest: UInt64 = 0
  /// Whether commits since the last checkpoint may have been buffered.
  ///
  /// The mark is durable before the first of them, so that recovery can accept a log whose end is missing without any damage.
  var isBuffered = false

  init(id: UUID) { (self.id, idText) = (id, id.uuidString) }

  /// Whether this row differs from an earlier one only by deleted tombstones, which changes no record and is no commit.
  func hasForgotten(since earlier: SQLiteStoreRow) -> Bool {
    // The digest is not compared: it changes with each tombstone.
    commit == earlier.commit && records == earlier.records && tombstones < earlier.tombstones && tombstonesSince > earlier.tombstonesSince
  }

  /// Upper half of the digest, which a record's row can carry in place of this row.
  ///
  /// 0 means that a row carries none, so a digest whose upper half is 0 is written to `larder_store`.
  var carriedDigest: UInt32 { UInt32(truncatingIfNeeded: digest >> 32) }

  /// Adds a record or tombstone to the digest, by its checksum.
  mutating func add(_ crc: UInt32) { digest &+= Self.mixed(crc) }
  /// Removes a record or tombstone from the digest, by its checksum.
  mutating func subtract(_ crc: UInt32) { digest &-= Self.mixed(crc) }

  /// Returns a checksum spread over 64 bits (the finalizer of SplitMix64), so that the sums of different sets differ.
  private static func mixed(_ crc: UInt32) -> UInt64 {
    var hash = UInt64(crc) &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
    return hash ^ hash >> 31
  }

  /// CRC32C of the row's columns written as text.
  private var checksum: Int64 {
    // Fields are separated, since "1" and "23" would otherwise be the text of "12" and "3".
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

  /// Reads the row, or throws `.corrupted` for a damaged one.
  init(on connection: SQLiteConnection) throws(RepositoryError) {
    let statement = try connection.prepare(Self.select)
    guard try statement.step(), let id = UUID(uuidString: try statement.text(0)) else {
      throw connection.damaged("expected one row in larder_store, found none that can be read")
    }
    // The other columns are judged together, by the checksum below.
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
    // A second row would leave it open which of the two is the store's.
    guard try !statement.step(), isWhole else {
      throw connection.damaged("expected one row with a correct checksum in larder_store, found other data")
    }
  }

  /// Binds all columns to ``insert`` or ``update``.
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
  /// Whether any record or tombstone is of a later commit, which the row of `larder_store` may be behind.
  ///
  /// Cost: a scan of every table, some 0.3 µs a record.
  func hasRecords(after commit: UInt64) throws(RepositoryError) -> Bool {
    var tables = [SQLiteLayout.tombstones]
    // Another program may have made tables since, which are judged at the next opening and not here.
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

/// The column `crc` of a row: its record's checksum in the lower 32 bits, and half of the store's digest or 0 in the upper ones.
struct SQLiteChecksum {
  let crc: UInt32
  /// Upper half of the store's digest after the commit that wrote the row, or 0 in a row that carries none.
  let digest: UInt32

  init(_ crc: UInt32, digest: UInt32 = 0) { (self.crc, self.digest) = (crc, digest) }

  init(column: Int64) { self.init(UInt32(truncatingIfNeeded: column), digest: UInt32(truncatingIfNeeded: column >> 32)) }

  var column: Int64 { Int64(bitPattern: UInt64(digest) << 32 | UInt64(crc)) }
}
