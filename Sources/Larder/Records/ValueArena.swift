internal import Foundation

/// A copier of values into blocks of memory that their slices share: a value costs no allocation, and keeps nothing else of its file alive.
struct ValueArena {
  private var block = Data()
  private var start: UnsafeMutableRawPointer?
  private var used = 0

  /// The size of a block, which is freed when the last of its values was decoded.
  private static let blockSize = 16 << 10

  /// Returns a copy of some bytes.
  mutating func copy(_ bytes: UnsafeRawBufferPointer) -> Data {
    guard let source = bytes.baseAddress, bytes.count <= Self.blockSize / 4 else { return Data(bytes) }
    if start == nil || used + bytes.count > Self.blockSize {
      guard let memory = malloc(Self.blockSize) else { return Data(bytes) }
      // A slice is taken only after its bytes were written, and later writes go behind it: no byte is written after it was handed out.
      (block, start, used) = (Data(bytesNoCopy: memory, count: Self.blockSize, deallocator: .free), memory, 0)
    }
    guard let start else { return Data(bytes) }
    (start + used).copyMemory(from: source, byteCount: bytes.count)
    defer { used += bytes.count }
    return block[used..<used + bytes.count]
  }
}
