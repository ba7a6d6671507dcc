/// A checkpoint that goes on beside commits.
///
/// First the snapshot is written, with everything up to one commit; then it is put into place, and the journal has that and what came
/// since, which recovers to the same; then the frames that came since are carried over to a new journal, which takes the place of the old one.
/// Whatever waits for the disk is done beside commits: the names are made durable there too, before anything is dropped or acknowledged that
/// depends on them.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case snapshot(BackgroundWork<MainFile>, MainFileDraft)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// Makes the name of the new journal durable, which takes the place of another one.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// Where the frames begin in the journal that the new snapshot does not have.
  let mark: Int
  /// How often frames that came meanwhile were carried over.
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
