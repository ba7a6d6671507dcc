internal import CServerZlib
public import Foundation

// Compression/ compresses answers and decompresses requests. Invariant: decompression takes no more memory than its limit, for any input.
// Called by Bodies/ and by `Answer`.

/// Compression in the gzip format (RFC 1952), by the system's zlib.
public enum Gzip {
  /// Size in bytes below which compression costs more than it saves.
  public static let worthwhile = 1_024
  /// Compression level: makes JSON nearly as small as the best level does, in a third of the time.
  private static let level: Int32 = 4
  /// Number of bytes that are decompressed in one step.
  private static let step = 64 << 10

  /// Returns the data compressed, or `nil` if that does not make it smaller.
  public static func packed(_ data: Data) -> Data? {
    var stream = z_stream()
    // zlib counts in 32 bits, and would read only a part of a longer input.
    guard data.count <= Int(UInt32.max), larder_server_begin_gzip(&stream, level) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    // One byte less than the input: output that does not fit is not smaller, and deflate stops there.
    var packed = Data(count: max(data.count - 1, 0))
    let isDone = packed.withUnsafeMutableBytes { output in
      data.withUnsafeBytes { input in
        // zlib only reads its input, though the pointer in the C struct is not const.
        stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
        stream.avail_out = UInt32(output.count)
        return deflate(&stream, Z_FINISH) == Z_STREAM_END
      }
    }
    guard isDone else { return nil }
    packed.removeLast(Int(stream.avail_out))
    return packed
  }

  /// Returns the data decompressed.
  ///
  /// - Throws: `.tooLarge` as soon as the output exceeds the limit, `.malformed` for data that is not exactly one gzip stream, and
  ///   `.unavailable` if zlib cannot begin.
  package static func unpacked(_ data: Data, limit: Int) throws(HTTPProblem) -> Data {
    var stream = z_stream()
    guard data.count <= Int(UInt32.max), larder_server_begin_gunzip(&stream) == Z_OK else { throw .unavailable(retryAfter: 1) }
    defer { inflateEnd(&stream) }
    var unpacked = Data()
    var buffer = [UInt8](repeating: 0, count: step)
    let result = data.withUnsafeBytes { input -> Result<Void, HTTPProblem> in
      stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
      stream.avail_in = UInt32(input.count)
      while true {
        let (status, left) = buffer.withUnsafeMutableBufferPointer { output in
          stream.next_out = output.baseAddress
          stream.avail_out = UInt32(output.count)
          return (inflate(&stream, Z_NO_FLUSH), Int(stream.avail_out))
        }
        // Input that ends early gives Z_BUF_ERROR here, so the loop cannot run without progress.
        guard status == Z_OK || status == Z_STREAM_END else { return .failure(.malformed("expected a body in gzip, found another")) }
        // Checked before the append: a few KiB can decompress to gigabytes.
        if unpacked.count + buffer.count - left > limit { return .failure(.tooLarge) }
        unpacked.append(contentsOf: buffer[..<(buffer.count - left)])
        if status == Z_STREAM_END { break }
      }
      return stream.avail_in == 0 ? .success(()) : .failure(.malformed("expected one body in gzip, found more behind it"))
    }
    try result.get()
    return unpacked
  }
}
