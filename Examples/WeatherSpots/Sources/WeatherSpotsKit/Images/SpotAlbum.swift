public import Foundation
public import Larder

/// The list of a spot's photos: their URLs without the images.
///
/// The images are in the ``ImageDatabase`` and can be fetched again.
public struct SpotAlbum: Codable, Hashable, Identifiable, Sendable {
  /// A photo of a spot, by its URL.
  public struct Photo: Codable, Hashable, Sendable {
    /// URL that the photo was fetched from.
    public let url: URL
    /// Image format of the photo.
    public let format: ImageFormat
    /// Size of the photo in bytes.
    public let bytes: Int
    /// Time at which the photo was added.
    public let addedAt: Date
  }

  /// Id of the spot.
  public let id: String
  /// Photos of the spot, the newest last.
  public var photos: [Photo]

  /// Adds a photo, which replaces an earlier one of the same URL.
  mutating func add(_ photo: Photo) {
    photos.removeAll { $0.url == photo.url }
    photos.append(photo)
    // A record is read and written as a whole, so its size needs a limit. `removeFirst` traps on a negative count, hence the `max`.
    photos.removeFirst(max(0, photos.count - 100))
  }
}

extension SpotStore {
  /// Returns the repository of albums, keyed by the id of the spot.
  public func albums() async throws(RepositoryError) -> LocalRepository<SpotAlbum> {
    try await store.repository(RepositorySchema("photos"))
  }

  /// Adds a photo to a spot's album, which keeps the last hundred photos.
  public func add(_ image: LoadedImage, to spot: Spot, at now: Date) async throws {
    let albums = try await albums()
    let photo = SpotAlbum.Photo(url: image.url, format: image.format, bytes: image.data.count, addedAt: now)
    // Read and save in one transaction, or two photos added at once would lose one.
    try await store.transaction { transaction in
      var album = try transaction.find(by: spot.id, in: albums) ?? SpotAlbum(id: spot.id, photos: [])
      album.add(photo)
      try transaction.save(album, in: albums)
    }
  }
}
