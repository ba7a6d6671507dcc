/// The reason why there is no image.
public enum ImageError: Error, Hashable, CustomStringConvertible {
  /// The URL is not one of http or https with a host.
  case invalidURL
  /// The server answered with this status.
  case http(status: Int)
  /// There is no whole answer.
  case transport(TransportError)
  /// The caller gave up.
  case cancelled
  /// The image is larger than this many bytes; no more of it was fetched.
  case tooLarge(limit: Int)
  /// The body is not an image of a known format.
  case notAnImage

  /// The failure in plain words, on one line.
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
