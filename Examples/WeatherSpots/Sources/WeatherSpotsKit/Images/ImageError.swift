/// An error of loading an image by its URL.
public enum ImageError: Error, Hashable, CustomStringConvertible {
  /// The URL is not an http or https URL with a host.
  case invalidURL
  /// The server answered with a status other than 200.
  case http(status: Int)
  /// The network failed before the answer was complete.
  case transport(TransportError)
  /// The calling task was cancelled.
  case cancelled
  /// The image is larger than `limit` bytes.
  ///
  /// The rest was not fetched.
  case tooLarge(limit: Int)
  /// The body does not begin like an image of a known format.
  case notAnImage

  /// Description of the failure on one line, for people.
  public var description: String {
    switch self {
    case .invalidURL: "expected an image URL such as https://example.org/pier.jpg"
    case .http(let status): "the server answered with status \(status)"
    case .transport(let error): error.description
    case .cancelled: "cancelled"
    case .tooLarge(let limit): "the image is larger than \(limit) bytes"
    case .notAnImage: "expected an image (PNG, JPEG, GIF, WebP, HEIC or AVIF), found something else"
    }
  }
}
