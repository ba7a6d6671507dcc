internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Opens that end before the store has accepted the records.
  static let refusing: [BackendRequirement] = [
    BackendRequirement(
      "aRefusedOpenChangesNothing", "open and abandon leave every file as it is, byte for byte, and make and remove none",
      needs: [.handles],
      needsFile: true
    ) { trial in
      try trial.openAndAbandon("a place without a store")
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.close()
      try trial.openAndAbandon("a store that was closed")
      try trial.open()
      try trial.commit(.put("c"))
      try trial.backend.checkpoint()
      try trial.commit(.put("d"), .delete("a"))
      try trial.commit(.put("e"), durability: .buffered)
      trial.drop()
      for _ in 1...2 { try trial.openAndAbandon("a store that was not closed") }
      try trial.open()
    },
    BackendRequirement(
      "recoveryKeepsWhatWasHandedOut", "the records that an open hands out after a crash are the same after recovery", needs: [.handles]
    ) { trial in
      try trial.open()
      trial.drop()
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.delete("a"), .put("c"), durability: .buffered)
      trial.drop()
      try trial.open()
      try trial.reopen()
      try trial.commit(.put("d"))
      trial.drop()
      try trial.open()
      trial.drop()
      try trial.open()
    },
    BackendRequirement(
      "aCutIsReportedUntilItIsRecovered", "what an open finds of a torn last commit, the next one finds again if the first was abandoned",
      needs: [.handles], needsFile: true
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"))
      try trial.commit(.put("b"))
      let before = try trial.files()
      try trial.commit(.put("c", #"{"n":"this commit will be torn"}"#))
      trial.drop()
      try trial.tearWhatChanged(since: before)
      let first = try trial.openAndAbandon("a store with a torn commit")
      let second = try trial.openAndAbandon("a store with a torn commit that was refused once")
      try trial.require(first == second, "the first open finds \(first), and after it was abandoned the next finds \(second)")
      guard !first.isRefusal else { return }
      let backend = try trial.place.makeBackend()
      let (report, _) = try Trial.open(backend)
      try backend.close()
      let third = Trial.Finding(report)
      try trial.require(first == third, "abandoned opens find \(first), and the open that recovers reports \(third)")
    },
  ]
}
