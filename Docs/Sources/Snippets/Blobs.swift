import Foundation
import Larder
import LarderBlobs

func keepingBytes(directory: URL, bytes: Data) async throws {
  let photos = try await BlobStore(directory: directory)
  try await photos.save(bytes, for: "https://example.org/pier.jpg")
  if let photo = try await photos.blob(for: "https://example.org/pier.jpg") {
    print(photo.data.count, photo.origin)  // memory or disk
  }
  print(photos.persistedKeys)
  try await photos.clear()
  try await photos.close()
}

func limitsAndReports(directory: URL) async throws {
  let photos = try await BlobStore(
    directory: directory, limits: .init(memoryCount: 50, memoryBytes: 20_000_000, diskCount: 1_000, diskBytes: 100_000_000)
  ) { problem in
    print(problem)  // a file that was damaged or gone, and is a miss now
  }
  if !photos.openReport.isClean { print(photos.openReport.orphans, photos.openReport.missing) }
  photos.removeFromMemory()  // the system is short of memory
}

func streaming(_ chunks: AsyncThrowingStream<Data, any Error>, into photos: BlobStore) async throws {
  try await photos.save(chunks, for: "https://example.org/panorama.heic")
}

func fetching(_ url: URL, into photos: BlobStore) async throws -> Data {
  let writer = try await photos.writer(for: url.absoluteString)
  let data = try await download(url)
  do {
    try await writer.write(data)
    try await writer.finish()
  } catch RepositoryError.Code.cancelled {
    // Cleared while the download ran: what was begun before does not come back.
  } catch {
    print("not kept: \(error)")  // a full disk, say
  }
  return data
}

private func download(_ url: URL) async throws -> Data { Data(url.absoluteString.utf8) }
