import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import WeatherSpotsKit

/// File of the page in the form that is sent, compressed once at the first use.
struct PageFile: Sendable {
  let data: Data
  let type: String
  let tag: String
  private let packed: Data?

  private init(_ bytes: [UInt8], _ type: String) {
    // JSON and SVG have no line comments, so only texts are shortened.
    data = type.hasPrefix("text/") ? Self.withoutRemarks(bytes) : Data(bytes)
    self.type = type
    // 96 bits are enough to tell the versions of a file apart, and keep the field short.
    tag = Data(SHA256.hash(data: data).prefix(12)).base64URL
    packed = Gzip.packed(data)
  }

  /// All files of the page by their URL paths.
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

  /// Returns a text without the indentation of its lines and without lines that are comments, which are a tenth of the page.
  ///
  /// No string literal of the page spans several lines, so removing them changes no value.
  private static func withoutRemarks(_ bytes: [UInt8]) -> Data {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { $0.drop { $0 == UInt8(ascii: " ") } }
    return Data(lines.filter { !$0.starts(with: Array("// ".utf8)) }.joined(separator: [UInt8(ascii: "\n")]))
  }

  /// Returns the response to a request for the file: its bytes, or 304 if the client has this version.
  func response(to request: Request) -> Response {
    // With no-cache the browser revalidates at each load, so the page and its modules are always of one version.
    // The tag is weak because the plain and the compressed bytes share it.
    let fields: HTTPFields = [.eTag: "W/\"\(tag)\"", .cacheControl: "no-cache"]
    return WebResponder.notModified(fields, request) ?? Answer.success(data, type: type, fields: fields, packed: packed, to: request)
  }
}
