import Foundation

/// Description of the server's API in OpenAPI 3.1.
enum WebDescription {
  static let json = Data(PackageResources.openapi_json)
}
