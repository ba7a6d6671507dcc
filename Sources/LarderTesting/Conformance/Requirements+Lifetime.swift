internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about second openings, closing, suspending and crashes.
  static let lifetime: [BackendRequirement] = [
    BackendRequirement("aSecondOpenIsRefused", "a second open in one process is refused with alreadyOpen, and the first goes on") { trial in
      try trial.open()
      try trial.commit(.put("a"))
      try trial.requireError(.alreadyOpen, from: "a second open") { _ = try Trial.open(trial.place.makeBackend()) }
      try trial.commit(.put("b"))
      try trial.reopen()
    },
    BackendRequirement(
      "aRefusedOpenHoldsNothing", "closing or dropping a backend whose open was refused changes nothing for the one that is open",
      needs: [.handles]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"))
      // The backend whose `open` was refused is closed in the first run of the loop, and dropped in the second run. A process loses its
      // POSIX lock of a file when it closes any descriptor of that file, so closing or dropping the refused backend could unlock the open
      // store.
      for closes in [true, false] {
        let second = try trial.place.makeBackend()
        try trial.requireError(.alreadyOpen, from: "a second open") { _ = try Trial.open(second) }
        if closes { try second.close() }
      }
      // The first backend must still hold its lock, so a further open must be refused.
      try trial.requireError(.alreadyOpen, from: "another second open") { _ = try Trial.open(trial.place.makeBackend()) }
      try trial.commit(.put("b"))
      try trial.reopen()
    },
    BackendRequirement(
      "droppingLosesNothing", "a backend that is dropped without close, as in a crash, loses nothing and frees the place", needs: [.handles]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.delete("a"))
      trial.drop()
      try trial.open()
      // The second crash leaves commits on both sides of a checkpoint. The third crash hits a store that was only opened.
      try trial.commit(.put("c"))
      try trial.backend.checkpoint()
      try trial.commit(.put("d"))
      trial.drop()
      try trial.open()
      trial.drop()
      try trial.open()
      try trial.reopen()
    },
    BackendRequirement(
      "droppingKeepsBufferedCommits", "buffered commits survive a crash of the process", needs: [.handles]
    ) { trial in
      try trial.open()
      // One buffered commit comes before the durable commit. The buffered commit after the durable one was not synced when the process
      // ends.
      try trial.commit(.put("a"), durability: .buffered)
      try trial.commit(.put("b"), durability: .durable)
      try trial.commit(.put("c"), .delete("a"), durability: .buffered)
      trial.drop()
      try trial.open()
    },
    BackendRequirement("closeKeepsBufferedCommits", "buffered commits are there after a close") { trial in
      try trial.open()
      try trial.commit(.put("a"), durability: .buffered)
      try trial.commit(.put("b"), .delete("a"), durability: .buffered)
      try trial.reopen()
    },
    BackendRequirement("closeCanBeRepeated", "the second close does nothing, and the place can be opened again") { trial in
      try trial.open()
      try trial.commit(.put("a"))
      let backend = try trial.backend
      try trial.close()
      // The second close of the backend finds no open file and no lock, and must not throw.
      try backend.close()
      try trial.open()
    },
    BackendRequirement(
      "aClosedBackendOpensAgain", "a backend that was closed or abandoned opens again, and hands out what was committed"
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"))
      let backend = try trial.backend
      try trial.close()
      try trial.open(backend)
      // A backend that was closed and opened again must also hold its locks again.
      try trial.requireError(.alreadyOpen, from: "a second open beside a backend that was opened again") {
        _ = try Trial.open(trial.place.makeBackend())
      }
      try trial.commit(.put("b"))
      try trial.close()
      // A store that refuses the records calls `abandon` instead of `recover`. After `abandon`, the same backend must open again.
      _ = try backend.open(.init()) { _ in }
      backend.abandon()
      try trial.open(backend)
      try trial.commit(.put("c"))
      try trial.reopen()
    },
    BackendRequirement(
      "aSuspendedBackendLetsOthersIn", "a suspended backend lets others open the place, and goes on with what they have committed",
      needs: [.handles]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), durability: .buffered)
      let first = try trial.backend
      // During the first suspension no other backend opens the store.
      try first.suspend()
      try trial.resume(first)
      try trial.commit(.put("b"))
      try first.suspend()
      let second = try trial.place.makeBackend()
      _ = try trial.open(second)
      try trial.requireError(.alreadyOpen, .locked, from: "resuming beside a backend that is open") {
        // If `resume` returns `false`, the backend is closed and a store would open it again. The call of `open` must be refused, because
        // the other backend has the store open.
        if try !first.resume() { _ = try Trial.open(first) }
      }
      try trial.commit(.put("c"), .delete("a"))
      // Each of the two backends has missed the commits that the other backend made during its suspension, and must return these commits
      // after `resume`.
      try second.suspend()
      try trial.resume(first, after: 2)
      try trial.commit(.put("d"))
      try first.suspend()
      try trial.resume(second, after: 3)
      try trial.commit(.put("e"), .delete("b"))
      try trial.close()
      try trial.resume(first, after: 4)
      try trial.commit(.put("f"))
      // Closing a suspended backend must not wait for a lock or lose a commit.
      try first.suspend()
      try first.close()
      try trial.open()
    },
    BackendRequirement("closeIsFinal", "commit, flush, checkpoint and backup of a closed backend throw closed") { trial in
      try trial.open()
      try trial.commit(.put("a"))
      let backend = try trial.backend
      try trial.close()
      let batch = trial.batch([[.put("b")]], from: trial.commit + 1)
      try trial.requireError(.closed, from: "a commit after close") { try backend.commit(batch) }
      try trial.requireError(.closed, from: "a flush after close") { try backend.flush() }
      try trial.requireError(.closed, from: "a checkpoint after close") { try backend.checkpoint() }
      if let backup = trial.place.backup {
        // A backend that makes no backups throws `.unsupported`, whether it is open or closed.
        try trial.requireError(.closed, .unsupported, from: "a backup after close") { try backend.backup(to: backup.file) }
      }
      try trial.open()
    },
  ]
}
