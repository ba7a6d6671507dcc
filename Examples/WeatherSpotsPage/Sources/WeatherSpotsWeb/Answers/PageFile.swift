import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import WeatherSpotsKit

/// A file of the page, as it is compiled in, and packed once.
struct PageFile: Sendable {
  let data: Data
  let type: String
  let tag: String
  private let packed: Data?

  private init(_ bytes: [UInt8], _ type: String) {
    data = Data(bytes)
    self.type = type
    tag = Data(SHA256.hash(data: data).prefix(12)).base64URL
    packed = Gzip.packed(data)
  }

  /// The files by their paths.
  static let all: [String: PageFile] = {
    let types = [
      "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
      "json": "application/json", "svg": "image/svg+xml",
    ]
    return PageContents.all.reduce(into: [:]) { files, file in
      let kind = file.key == "/" ? "html" : file.key.split(separator: ".").last.map(String.init) ?? ""
      files[file.key] = PageFile(file.value, types[kind] ?? "application/octet-stream")
    }
  }()

  /// Returns the answer to a request for the file.
  func response(to request: Request) -> Response {
    // The browser asks each time whether it has changed: the page and its modules are always of one version.
    let fields: HTTPFields = [.eTag: "W/\"\(tag)\"", .cacheControl: "no-cache"]
    return WebResponder.notModified(fields, request) ?? Answer.success(data, type: type, fields: fields, packed: packed, to: request)
  }
}
