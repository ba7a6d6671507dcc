import Larder

/// The state in which a store lies in its directory before a situation is made of it.
enum StoreState: String, CaseIterable, Sendable {
  case absent, closed
  /// As a killed process leaves it: with everything in the journal or log.
  case killed
}

/// The answer that is expected where an entry of some kind lies under a name of a store's family.
struct EntryRule: CustomStringConvertible {
  let backing: Backing
  var state: StoreState
  let suffix: String
  let kind: EntryKind
  let access: StoreOptions.Access

  var description: String { "\(backing) \(state), \(kind) at '\(suffix)', \(access)" }

  static func suffixes(_ backing: Backing) -> [String] {
    let common = [
      "", backing.log, "-lock", "-journal-tmp", "-tmp", "-previous", "-previous-tmp", "-copy-0123456789abcdef-tmp", "-copy-1-tmp",
      "-quarantine-1-64", "-quarantine-1-64-tmp", "-quarantine-1-64-due", "-quarantine-1-64-torn", "-notes", " copy",
    ]
    return common + (backing == .sqlite ? ["-shm", "-journal", "-new", "-new2", "-new-wal", "-new-journal"] : ["-wal", "-shm", "-new"])
  }

  private static let all: Set<String> = ["spots/1", "spots/2"]
  private var isReading: Bool { access == .readOnly }

  /// The answer where the entry does not matter.
  private var usual: Answer {
    if state != .absent { return .everything(Self.all) }
    return isReading ? .refused(.dataMissing) : .everything([])
  }

  /// Whether the entry is none that a store may write, rename or remove.
  var isOfOthers: Bool {
    switch suffix {
    case "-previous", "-quarantine-1-64", "-copy-1-tmp", "-notes", " copy": true
    case "-wal", "-shm", "-new", "-journal-tmp", "-tmp", "-copy-0123456789abcdef-tmp", "-quarantine-1-64-tmp":
      // SQLite's drafts are removed where they are empty or zeros, and JSON's where they are no directories.
      backing == .json
        ? ["-wal", "-shm", "-new"].contains(suffix) || [.directory, .fullDirectory].contains(kind)
        : kind == .text
          && suffix != "-wal" && suffix != "-shm"
    default: false
    }
  }

  /// The one answer.
  var answer: Answer {
    switch (backing, suffix) {
    case (_, ""): ofMain
    case (_, backing.log): ofLog
    case (.json, "-lock"): kind.isFile || isReading ? usual : .refused(.unsupported)
    case (.sqlite, "-lock"), (.sqlite, "-shm"): kind.isFile && kind != .hardLink ? usual : .refused(.unsupported)
    case (.sqlite, "-journal"): ofRollbackJournal
    case (.json, "-tmp"), (.json, "-journal-tmp"):
      [.directory, .fullDirectory].contains(kind) && !isReading ? .refused(.unsupported) : usual
    case (.json, _) where suffix == "-previous" || suffix.hasPrefix("-quarantine-") && !suffix.hasSuffix("-tmp"):
      state == .absent ? .refused(.dataMissing) : usual
    default: usual
    }
  }

  private var ofMain: Answer {
    switch kind {
    case .empty, .zeros: .refused(.corrupted)
    case .text: .refused(.notOurStore)
    case .hardLink: .refused(backing == .json && isReading ? .notOurStore : .unsupported)
    default: .refused(.unsupported)
    }
  }

  private var ofLog: Answer {
    if backing == .json, state == .absent, isReading { return .refused(.dataMissing) }
    if !kind.isFile || backing == .sqlite && kind == .hardLink { return .refused(.unsupported) }
    if state == .absent { return .refused(.dataMissing) }
    if backing == .json { return .refused(.corrupted) }
    // SQLite's log was the only place of what is not folded; what lies there instead is kept aside and reported.
    return .everything(state == .closed ? Self.all : [])
  }

  /// SQLite ignores a rollback journal that is empty or begins with a zero.
  private var ofRollbackJournal: Answer {
    if !kind.isFile { return .refused(.unsupported) }
    if state == .absent { return .refused(.dataMissing) }
    return [.empty, .zeros].contains(kind) ? usual : .refused(.notOurStore)
  }
}

/// The answers that are expected where entries lie under two names of a store's family.
struct EntryPairRule: CustomStringConvertible {
  let first: EntryRule
  let second: EntryRule

  var description: String { "\(first), and \(second.kind) at '\(second.suffix)'" }

  /// The one answer; two where both entries are reasons to refuse, since then either may be found first.
  var answers: [Answer] {
    var second = second
    // With an entry under its name, the main file is not missing.
    if first.suffix.isEmpty, second.state == .absent { second.state = .closed }
    return switch (first.answer, second.answer) {
    case (.everything(let left), .everything(let right)): [.everything(left.intersection(right))]
    case (.refused, .everything): [first.answer]
    case (.everything, .refused): [second.answer]
    case (.refused, .refused): [first.answer, second.answer]
    }
  }
}
