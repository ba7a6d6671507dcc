import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

struct SyncRejected: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "rejected",
    abstract: "Lists the changes that the server has refused; they are kept here.",
    discussion: """
      A change to such a spot is sent again. --retry has all of them sent again by the next `sync`; --revert gives them up, and the spots \
      become what the server has. Sends no request.
      """)

  @Flag(help: "Have them sent again.")
  var retry = false

  @Flag(help: "Give them up.")
  var revert = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard !retry || !revert else { throw ValidationError("Give either --retry or --revert.") }
  }

  func execute() async throws {
    try await globals.withStore { storage in
      // No request is sent, so no token is needed.
      let sync = try await storage.sync(token: nil)
      let found = try await sync.rejected.fetch(Query().sorted(by: \.date))
      if globals.json {
        try writeJSON(found.map { ["spot": $0.recordID, "code": $0.code, "detail": $0.detail, "date": $0.date.formatted(.iso8601)] })
      } else {
        try writeText(found.isEmpty ? "Nothing was rejected.\n" : found.map { "\($0.recordID): \($0.code) \($0.detail)\n" }.joined())
      }
      // The list is written first: a reverted change is gone from the store.
      for rejection in found {
        if retry { try await sync.retry(rejection) } else if revert { try await sync.revert(rejection) }
      }
    }
  }
}
