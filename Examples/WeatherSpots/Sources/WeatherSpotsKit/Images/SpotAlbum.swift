public import Foundation
public import Larder

/// The photos of a spot: their URLs, for the images themselves are in the ``ImageDatabase`` and can be fetched again.
public struct SpotAlbum: Codable, Hashable, Identifiable, Sendable {
  /// A photo of a spot.
  public struct Photo: Codable, Hashable, Sendable {
    /// The URL that it was fetched from.
    public let url: URL
    /// Its format.
    public let format: ImageFormat
    /// Its size in bytes.
    public let bytes: Int
    /// The time at which it was added.
    public let addedAt: Date
  }

  /// The id of the spot.
  public let id: String
  /// Its photos, the newest last.
  public var photos: [Photo]

  /// Adds a photo, in the place of one of the same URL.
  mutating func add(_ photo: Photo) {
    photos.removeAll { $0.url == photo.url }
    photos.append(photo)
    photos.removeFirst(max(0, photos.count - 100))
  }
}

extension SpotStore {
  /// Returns the albums by spot.
  public func albums() async throws(RepositoryError) -> LocalRepository<SpotAlbum> {
    try await store.repository(RepositorySchema("photos"))
  }

  /// Adds a photo to a spot's album, which keeps the last hundred.
  public func add(_ image: LoadedImage, to spot: Spot, at now: Date) async throws {
    let albums = try await albums()
    let photo = SpotAlbum.Photo(url: image.url, format: image.format, bytes: image.data.count, addedAt: now)
    try await store.transaction { transaction in
      var album = try transaction.find(by: spot.id, in: albums) ?? SpotAlbum(id: spot.id, photos: [])
      album.add(photo)
      try transaction.save(album, in: albums)
    }
  }

  /// Removes a spot, and its album with it.
  ///
  /// - Returns: Whether there was such a spot.
  @discardableResult
  public func remove(_ spot: Spot) async throws -> Bool {
    let (spots, albums) = (spots, try await albums())
    return try await store.transaction { transaction in
      try transaction.delete(spot.id, in: albums)
      return try transaction.delete(spot.id, in: spots)
    }
  }
}
