internal import Foundation
internal import Larder
internal import TestSupport

/// Queries, and their pages.
extension World {
  func query() async throws {
    let question = Question(using: &random)
    let answer: [Place]
    switch random.int(0..<4) {
    case 0: answer = try places.snapshot.fetch(question.query)
    case 1:
      let count = try await places.count(question.query)
      let wanted = question.expected(in: model.places).count
      return try expect(count == wanted, "the query '\(question.text)' counts \(count), not \(wanted)")
    default: answer = try await places.fetch(question.query)
    }
    try question.check(answer, in: model.places, mistake: mistake)
  }

  func pages() async throws {
    let query = Query<Place>().where(\.value, .greater, 20).sorted(by: \.value, random.chance(50) ? .forward : .reverse)
    let size = random.int(1..<8)
    var all: [Place] = []
    var cursor: PageCursor?
    repeat {
      let page = try await places.page(query, after: cursor, limit: size)
      all += page.items
      cursor = page.next
      try expect(all.count <= model.places.count, "pages of \(size) do not end")
    } while cursor != nil
    let whole = try await places.fetch(query)
    try expect(all == whole, "pages of \(size) give \(all.map(\.id)), not \(whole.map(\.id))")
    let wanted = model.places.values.count { $0.value > 20 }
    try expect(all.count == wanted, "pages give \(all.count) places, not \(wanted)")
  }
}
