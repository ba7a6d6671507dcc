import Larder
import Testing

@testable import Snippets

@Test func theMigrationPlanIsComplete() throws {
  try Piers.schema.validate()
}
