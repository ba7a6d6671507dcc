public import Foundation
public import Larder

/// A loaded image with its format and its origin.
public struct LoadedImage: Sendable {
  /// The place that an image was loaded from.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// Memory, the disk, or the server of the URL.
    case memory, disk, network
  }

  /// URL of the image.
  public let url: URL
  /// Bytes of the image, as the server sent them.
  public let data: Data
  /// Format, recognised by the first bytes.
  public let format: ImageFormat
  /// Place that the image was loaded from by this call.
  public let origin: Origin
  /// Error of the disk if the image could not be read from it or kept on it.
  ///
  /// The image itself is complete.
  public var storageError: RepositoryError?
}
