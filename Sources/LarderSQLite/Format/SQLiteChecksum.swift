/// The column `crc` of a row: the checksum of its record in the lower half, and the part of the digest that it carries in the upper one.
struct SQLiteChecksum {
  let crc: UInt32
  /// The upper half of the store's digest after the commit that wrote the row; 0 in a row that carries none.
  let digest: UInt32

  init(_ crc: UInt32, digest: UInt32 = 0) { (self.crc, self.digest) = (crc, digest) }

  init(column: Int64) { self.init(UInt32(truncatingIfNeeded: column), digest: UInt32(truncatingIfNeeded: column >> 32)) }

  var column: Int64 { Int64(bitPattern: UInt64(digest) << 32 | UInt64(crc)) }
}
