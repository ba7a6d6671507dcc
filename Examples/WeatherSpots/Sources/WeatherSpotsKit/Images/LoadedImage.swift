public import Foundation
public import Larder

/// An image, and where it came from this time.
public struct LoadedImage: Sendable {
  /// Where an image was found.
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
  /// Where it was found.
  public let origin: Origin
  /// Why it could not be read from disk or kept there, if so: the image is none the worse for it.
  public var storageError: RepositoryError?
}
