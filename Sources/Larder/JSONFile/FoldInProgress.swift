/// A checkpoint that goes on beside commits.
///
/// First the main file is written, with everything up to one commit; then it is put into place, and the journal has that and what came
/// since, which recovers to the same; then the frames that came since are carried over to a new journal, which takes the place of the old
/// one. Whatever waits for the disk is done beside commits: the names are made durable there too, before anything is dropped or
/// acknowledged that depends on them.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case mainFile(BackgroundWork<MainFile>, TransferBox<MainFileDraft>)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// Makes the name of the new journal durable, which takes the place of another one.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// The offset of the first frame in the journal that the new main file does not have.
  let mark: Int
  /// The number of times that frames which came meanwhile were carried over.
  var rounds = 0
}

/// A journal to come, as far as it has the frames of the one before.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  let sourceEnd: Int
  let end: Int
  /// The last commit that it has, synced.
  let commit: UInt64
}
