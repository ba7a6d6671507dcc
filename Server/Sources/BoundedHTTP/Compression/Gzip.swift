internal import CServerZlib
public import Foundation
package import LarderSync

// Compression/ packs answers and unpacks requests. Invariant: what is unpacked never takes more memory than its limit allows, whatever it
// says of itself. Called by HTTP.

/// The form of gzip (RFC 1952), over the system's zlib.
public enum Gzip {
  /// The size in bytes below which packing gains less than it costs.
  public static let worthwhile = 1_024
  /// A level that packs JSON to nearly what the best one makes of it, in a third of the time.
  private static let level: Int32 = 4
  /// The bytes that are unpacked in one step.
  private static let step = 64 << 10

  /// Returns bytes in packed form; `nil` where they would not become fewer.
  public static func packed(_ data: Data) -> Data? {
    var stream = z_stream()
    guard data.count <= Int(UInt32.max), larder_server_begin_gzip(&stream, level) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    // Room for one byte less than there is: what does not fit into it is not worth it.
    var packed = Data(count: max(data.count - 1, 0))
    let isDone = packed.withUnsafeMutableBytes { output in
      data.withUnsafeBytes { input in
        // zlib only reads what its C type would let it write.
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

  /// Returns the bytes that others were packed from.
  ///
  /// - Throws: `.tooLarge` as soon as there are more than the limit, `.malformed` for what is not gzip to its end.
  package static func unpacked(_ data: Data, limit: Int) throws(SyncProblem) -> Data {
    var stream = z_stream()
    guard data.count <= Int(UInt32.max), larder_server_begin_gunzip(&stream) == Z_OK else { throw .unavailable(retryAfter: 1) }
    defer { inflateEnd(&stream) }
    var unpacked = Data()
    var buffer = [UInt8](repeating: 0, count: step)
    let result = data.withUnsafeBytes { input -> Result<Void, SyncProblem> in
      stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
      stream.avail_in = UInt32(input.count)
      while true {
        let (status, left) = buffer.withUnsafeMutableBufferPointer { output in
          stream.next_out = output.baseAddress
          stream.avail_out = UInt32(output.count)
          return (inflate(&stream, Z_NO_FLUSH), Int(stream.avail_out))
        }
        guard status == Z_OK || status == Z_STREAM_END else { return .failure(.malformed("expected a body in gzip, found another")) }
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
