import Foundation
import LarderBlobs
import Testing

/// This package takes Larder with the trait `SwiftCrypto`; the library's own tests are run without it.
@Suite struct BlobDigestTests {
  /// Examples of NIST for FIPS 180-4.
  @Test(arguments: [
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func theFileOfABlobIsNamedByTheDigestOfItsKey(_ key: String, _ digest: String) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-digest-\(UUID())")
    defer { try? FileManager.default.removeItem(at: directory) }
    let blobs = try await BlobStore(directory: directory)
    try await blobs.save(Data(repeating: UInt8(ascii: "a"), count: 1_000_000), for: key)
    try await blobs.close()
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
    #expect(names.contains { $0.contains(digest) }, "\(names)")

    // Compared with its digest, which is read from the index.
    let reopened = try await BlobStore(directory: directory)
    #expect(try await reopened.blob(for: key)?.data.count == 1_000_000)
    try await reopened.close()
  }
}
