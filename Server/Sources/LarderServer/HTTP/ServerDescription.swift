internal import Foundation

/// The description of the wire by OpenAPI.
enum ServerDescription {
  static let json = Data("{}".utf8)
}
