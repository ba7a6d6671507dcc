import Foundation
import Larder

/// The record that everything is done with.
struct Jar: Codable, Identifiable, Hashable, Sendable {
  let id: Int
  var label: String
  var shelf: Int
  var latitude: Double
  var longitude: Double

  /// Makes the jar with a number, in the version of a use.
  init(_ number: Int, use: Int = 0) {
    id = number
    label = "jar \(number) of use \(use) with plums"
    shelf = number % 10
    latitude = Double(number % 80)
    longitude = Double(number % 170)
  }

  static let count = 200
  static let all = (0..<count).map { Jar($0) }
  static let schema = RepositorySchema<Jar>(
    "jars", indexes: [.ordered(\.shelf, \.label), .geo(\.latitude, \.longitude), .fullText(\.label)])

  /// Opens a repository in memory that holds all jars.
  static func inMemory() async throws -> LocalRepository<Jar> {
    let jars = try await LocalRepository<Jar>(inMemory: schema)
    try await jars.save(contentsOf: all)
    return jars
  }
}
