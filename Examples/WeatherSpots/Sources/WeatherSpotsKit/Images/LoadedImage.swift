public import Foundation
public import Larder

/// An image, and where it came from this time.
public struct LoadedImage: Sendable {
  /// The origin of an image.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// Memory, a file, or its server.
    case memory, disk, network
  }

  /// Its URL.
  public let url: URL
  /// Its bytes, as the server sent them.
  public let data: Data
  /// Its format, by its first bytes.
  public let format: ImageFormat
  /// The origin of the image.
  public let origin: Origin
  /// The failure of the disk, if the image could not be read from it or kept there; the image itself is complete.
  public var storageError: RepositoryError?
}
