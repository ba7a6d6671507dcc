import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import WeatherSpotsKit

/// A file of the page as it is sent, and packed once.
struct PageFile: Sendable {
  let data: Data
  let type: String
  let tag: String
  private let packed: Data?

  private init(_ bytes: [UInt8], _ type: String) {
    data = type.hasPrefix("text/") ? Self.withoutRemarks(bytes) : Data(bytes)
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

  /// Returns a text without the blanks that lines begin with, and without the lines that are remarks: a tenth of the page.
  ///
  /// The page has no text of several lines in which either would count.
  private static func withoutRemarks(_ bytes: [UInt8]) -> Data {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { $0.drop { $0 == UInt8(ascii: " ") } }
    return Data(lines.filter { !$0.starts(with: Array("// ".utf8)) }.joined(separator: [UInt8(ascii: "\n")]))
  }

  /// Returns the answer to a request for the file.
  func response(to request: Request) -> Response {
    // The browser asks each time whether it has changed: the page and its modules are always of one version.
    let fields: HTTPFields = [.eTag: "W/\"\(tag)\"", .cacheControl: "no-cache"]
    return WebResponder.notModified(fields, request) ?? Answer.success(data, type: type, fields: fields, packed: packed, to: request)
  }
}
