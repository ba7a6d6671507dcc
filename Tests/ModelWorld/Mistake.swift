/// A mistake that is made on purpose between the alphabet and the store: a run must find it.
package enum Mistake: CaseIterable, Sendable {
  /// Every third deletion is acknowledged and not done.
  case losesDeletions
  /// The writes of a transaction that throws stay.
  case keepsThrownTransactions
  /// A query leaves out the last record of its answer when there are more than five.
  case cutsAnswers
  /// Buffered writes count as durable ones: a cut of power may take them.
  case calledDurable
  /// A migration step is done twice on one record.
  case migratesTwice
  /// An invalidated value is still served.
  case servesInvalidated
  /// Every eighth change that a stream tells is lost on the way.
  case losesChanges
  /// The copy that is damaged loses a record, and what is reported is not shown.
  case silentDamage
}
