import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct ImageFormatTests {
  private static func box(_ brands: String...) -> Data {
    Data([0, 0, 0, UInt8(8 + 4 * (brands.count + 1))]) + Data("ftyp\(brands[0])".utf8) + Data([0, 0, 0, 0])
      + Data(brands.dropFirst().joined().utf8)
  }

  @Test(arguments: [
    (point, ImageFormat.png), (Data([0xFF, 0xD8, 0xFF, 0xE0]), .jpeg), (Data("GIF87a".utf8), .gif), (Data("GIF89a".utf8), .gif),
    (Data("RIFF".utf8) + Data([1, 2, 3, 4]) + Data("WEBPVP8 ".utf8), .webp), (box("heic", "mif1"), .heic), (box("mif1", "heic"), .heic),
    (box("avif", "mif1", "miaf"), .avif), (box("mif1", "avif"), .avif), (box("msf1"), .heic),
  ])
  func theFirstBytesTellTheFormat(_ bytes: Data, _ format: ImageFormat) {
    #expect(ImageFormat(bytes) == format)
    #expect(ImageFormat(bytes + Data(repeating: 7, count: 5000)) == format)
    #expect(ImageFormat(Data([0]) + bytes) == nil)
  }

  @Test(arguments: [
    Data(), Data([0x89]), Data("<svg xmlns=\"http://www.w3.org/2000/svg\"/>".utf8), Data("<?xml version=\"1.0\"?><svg/>".utf8),
    Data("<html>".utf8), Data("RIFF1234WAVE".utf8), Data("GIF88a".utf8), box("isom", "mp42"), box("qt  "),
    Data([0, 0, 0, 8]) + Data("ftyp".utf8),
    Data("%PDF-1.7".utf8), point.dropFirst(), Data(point.prefix(7)),
  ])
  func anythingElseIsNotAnImage(_ bytes: Data) { #expect(ImageFormat(bytes) == nil) }
}
