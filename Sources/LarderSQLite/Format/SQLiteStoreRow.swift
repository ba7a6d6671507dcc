internal import Foundation
internal import Larder

/// The one row of `larder_store`: the identity of the store, its newest commit, and the sum of all that it must hold.
struct SQLiteStoreRow: Equatable {
  let id: UUID
  /// The id as it is stored: made once, and not for every commit.
  private let idText: String
  var commit: UInt64 = 0
  /// The commit up to which tombstones may have been forgotten.
  var tombstonesSince: UInt64 = 0
  var records = 0
  var tombstones = 0
  /// The sum of a hash of every record and tombstone; it tells when one vanished, doubled or came back from an older page.
  var digest: UInt64 = 0
  /// Whether commits since the last checkpoint may have been buffered.
  ///
  /// Durable before the first of them, so that recovery knows that the end of the log may be missing without any damage.
  var isBuffered = false

  init(id: UUID) { (self.id, idText) = (id, id.uuidString) }

  /// Whether this is an earlier row after tombstones were forgotten, which changes no record and is no commit.
  func hasForgotten(since earlier: SQLiteStoreRow) -> Bool {
    commit == earlier.commit && records == earlier.records && tombstones < earlier.tombstones && tombstonesSince > earlier.tombstonesSince
  }

  /// The half of the digest that a record's row can carry; 0 stands for none, so that a digest with that half stays here.
  var carriedDigest: UInt32 { UInt32(truncatingIfNeeded: digest >> 32) }

  /// Adds a record or tombstone to the sum, by its checksum.
  mutating func add(_ crc: UInt32) { digest &+= Self.mixed(crc) }
  /// Removes a record or tombstone from the sum, by its checksum.
  mutating func subtract(_ crc: UInt32) { digest &-= Self.mixed(crc) }

  /// Returns a checksum spread over 64 bits (the finalizer of SplitMix64), so that sums of different sets differ.
  private static func mixed(_ crc: UInt32) -> UInt64 {
    var hash = UInt64(crc) &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
    return hash ^ hash >> 31
  }

  /// The CRC32C of the row written as text.
  private var checksum: Int64 {
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

  /// Reads the row; refuses a damaged one.
  init(on connection: SQLiteConnection) throws(RepositoryError) {
    let statement = try connection.prepare(Self.select)
    guard try statement.step(), let id = UUID(uuidString: try statement.text(0)) else {
      throw connection.damaged("expected one row in larder_store, found none that can be read")
    }
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
  /// Whether any record or tombstone is of a later commit than this, of which the row of `larder_store` need not tell.
  ///
  /// Cost: a scan of every table, some 0.3 µs a record.
  func hasRecords(after commit: UInt64) throws(RepositoryError) -> Bool {
    var tables = [SQLiteLayout.tombstones]
    // Another program may have made tables; what is wrong with them is not asked here.
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

/// The column `crc` of a row: the checksum of its record in the lower half, and the part of the digest that it carries in the upper one.
struct SQLiteChecksum {
  let crc: UInt32
  /// The upper half of the store's digest after the commit that wrote the row; 0 in a row that carries none.
  let digest: UInt32

  init(_ crc: UInt32, digest: UInt32 = 0) { (self.crc, self.digest) = (crc, digest) }

  init(column: Int64) { self.init(UInt32(truncatingIfNeeded: column), digest: UInt32(truncatingIfNeeded: column >> 32)) }

  var column: Int64 { Int64(bitPattern: UInt64(digest) << 32 | UInt64(crc)) }
}
