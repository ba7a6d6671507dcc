import Foundation

/// The description of what the server answers, by OpenAPI 3.1.
enum WebDescription {
  static let json = Data(PackageResources.openapi_json)
}
