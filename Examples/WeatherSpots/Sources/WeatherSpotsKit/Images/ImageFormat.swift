public import Foundation

/// An image format, recognised by the first bytes of the data.
///
/// The `Content-Type` of the server is ignored.
public enum ImageFormat: String, Codable, CaseIterable, Hashable, Sendable {
  /// The formats by their usual names.
  case png, jpeg, gif, webp, heic, avif

  /// Number of leading bytes that are examined.
  static let prefixLength = 64

  /// Recognises the format by the first bytes, or returns `nil` for any other data, text such as SVG included.
  public init?(_ bytes: Data) {
    let head = [UInt8](bytes.prefix(Self.prefixLength))
    func has(_ text: String, at offset: Int) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }
    if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if head.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if has("GIF87a", at: 0) || has("GIF89a", at: 0) {
      self = .gif
      // Bytes 4 to 7 are the size of the RIFF file and differ from image to image.
    } else if has("RIFF", at: 0), has("WEBP", at: 8) {
      self = .webp
    } else if has("ftyp", at: 4), let format = Self.ofBrands(head) {
      self = format
    } else {
      return nil
    }
  }

  /// Returns AVIF or HEIC by the brands of an ISO base media file (ISO 14496-12).
  ///
  /// The first box holds a major brand, a version, and compatible brands up to its end.
  private static func ofBrands(_ head: [UInt8]) -> ImageFormat? {
    let size = head.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    // The size comes from the file and may be any number. The bound keeps the reads inside `head`.
    let end = min(size, head.count)
    let brands = ([8] + Array(stride(from: 16, to: end, by: 4))).compactMap { offset in
      offset + 4 <= end ? String(decoding: head[offset..<(offset + 4)], as: UTF8.self) : nil
    }
    // AVIF first: its files often have `mif1` among the compatible brands, which HEIC has too.
    if brands.contains("avif") || brands.contains("avis") { return .avif }
    let still: Set = ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"]
    return brands.contains(where: still.contains) ? .heic : nil
  }

  /// Name of the format for people.
  public var name: String { self == .webp ? "WebP" : rawValue.uppercased() }
}
