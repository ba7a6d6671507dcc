import Foundation
import Larder

/// One way for a backend to be wrong, with the rules that must find it.
enum LogDefect: String, CaseIterable, Sendable {
  case isNeverNew, isAlwaysNew, changesIdentity, cutsVersions, cutsRevisions, reportsReplay, forgetsCommitsWhenEmpty, commitFromRecords
  case replacesForeignFiles, ignoresAccess
  case splitsBatches, keepsPartOfARefusedBatch, acceptsGaps, acceptsRepeats, firstOfABatchHolds, dropsTombstones, tombstonesStick
  case closeKeepsAllTombstones, forgetsNewestTombstones, handsOutTwice, hidesHorizon
  case mergesCollections, mergesCollectionCases, cutsKeysAtNUL, normalisesKeys, mergesKeyCases, losesTheEmptyKey, losesPaths, cutsLongKeys
  case reencodesValues, takesNullForADeletion, losesLargeValues, losesManyRecords
  case opensTwice, opensOnce, refusedCloseReleases, keepsLockWhenDropped, keepsBufferedInMemory, closeDropsBuffered, secondCloseThrows
  case flushesWhenClosed, flushDropsBuffered, checkpointDropsTombstones, checkpointKeepsOneCollection, secondCheckpointEmpties
  case verifyCountsTombstones, backupIsOld, backupReplaces
  case ignoresSuspension
  case createsWhileOpening, cutsWhileOpening, recoveryForgets

  /// The names of the rules that must fail.
  var brokenRules: Set<String> {
    switch self {
    case .isNeverNew: ["openCreatesAnEmptyStore"]
    case .isAlwaysNew:
      [
        "openCreatesOnlyOnce", "aBackupEqualsTheStore", "verifyCountsWhatIsThere", "droppingLosesNothing", "recoveryKeepsWhatWasHandedOut",
      ]
    case .changesIdentity: ["openCreatesOnlyOnce"]
    case .cutsVersions: ["everyRecordComesBack"]
    case .cutsRevisions: ["tenThousandRecordsAreKept"]
    case .reportsReplay: ["openReportIsClean"]
    case .forgetsCommitsWhenEmpty: ["commitNumbersSurvive", "keysAreNoPaths", "tombstonesAreBounded"]
    case .commitFromRecords: ["noTombstonesIsALimitToo", "aRewriteKeepsItsRevision"]
    case .replacesForeignFiles: ["foreignFilesAreRefused"]
    case .ignoresAccess: ["otherAccessIsServedOrRefused"]
    case .splitsBatches: ["aBatchIsKeptWhole"]
    case .keepsPartOfARefusedBatch: ["aRefusedBatchLeavesNothing"]
    case .acceptsGaps: ["aRefusedBatchLeavesNothing", "batchesFollowEachOther"]
    case .acceptsRepeats: ["batchesFollowEachOther"]
    case .firstOfABatchHolds: ["theLastOfOneAddressHolds", "aRewriteKeepsItsRevision"]
    case .dropsTombstones: ["tombstonesComeBack"]
    case .tombstonesStick: ["savingAgainRemovesTheTombstone", "theLastOfOneAddressHolds", "collectionsAreApart"]
    case .closeKeepsAllTombstones: ["tombstonesAreBounded", "noTombstonesIsALimitToo", "theHorizonIsTheNewestForgottenDeletion"]
    case .forgetsNewestTombstones: ["tombstonesAreBounded", "theHorizonIsTheNewestForgottenDeletion"]
    case .hidesHorizon: ["theHorizonIsTheNewestForgottenDeletion"]
    case .handsOutTwice: ["everyRecordComesBack"]
    case .mergesCollections: ["collectionsAreApart", "collectionNamesAreApart"]
    case .mergesCollectionCases: ["collectionNamesAreApart"]
    case .cutsKeysAtNUL: ["keysWithNULAreApart"]
    case .normalisesKeys, .mergesKeyCases: ["keysAreComparedByBytes"]
    case .losesTheEmptyKey: ["theEmptyKeyIsAKey"]
    case .losesPaths: ["keysAreNoPaths"]
    case .cutsLongKeys: ["longKeysAndEmojiAreKept"]
    case .reencodesValues, .takesNullForADeletion: ["valuesAreKeptByteForByte"]
    case .losesLargeValues: ["aMebibyteIsKept"]
    case .losesManyRecords: ["tenThousandRecordsAreKept"]
    case .opensTwice: ["aSecondOpenIsRefused", "aRefusedOpenHoldsNothing", "aClosedBackendOpensAgain", "aSuspendedBackendLetsOthersIn"]
    case .opensOnce: ["aClosedBackendOpensAgain", "aSuspendedBackendLetsOthersIn"]
    case .refusedCloseReleases: ["aRefusedOpenHoldsNothing"]
    case .keepsLockWhenDropped:
      [
        "droppingLosesNothing", "droppingKeepsBufferedCommits", "aRefusedOpenChangesNothing", "recoveryKeepsWhatWasHandedOut",
        "aRewriteKeepsItsRevision",
      ]
    case .keepsBufferedInMemory:
      ["droppingKeepsBufferedCommits", "aRefusedOpenChangesNothing", "recoveryKeepsWhatWasHandedOut"]
    case .closeDropsBuffered:
      [
        "closeKeepsBufferedCommits", "droppingKeepsBufferedCommits", "aBackupEqualsTheStore", "aRefusedOpenChangesNothing",
        "recoveryKeepsWhatWasHandedOut",
      ]
    case .ignoresSuspension: ["aSuspendedBackendLetsOthersIn"]
    case .secondCloseThrows: ["closeCanBeRepeated", "aSuspendedBackendLetsOthersIn"]
    case .flushesWhenClosed: ["closeIsFinal"]
    case .flushDropsBuffered: ["flushKeepsEverything", "aSuspendedBackendLetsOthersIn"]
    case .checkpointDropsTombstones:
      [
        "checkpointKeepsEverything", "tombstonesAreBounded", "verifyCountsWhatIsThere", "droppingLosesNothing", "tenThousandRecordsAreKept",
        "theHorizonIsTheNewestForgottenDeletion",
      ]
    case .checkpointKeepsOneCollection: ["checkpointKeepsEverything", "verifyCountsWhatIsThere", "aBackupEqualsTheStore"]
    case .secondCheckpointEmpties: ["checkpointCanBeRepeated", "checkpointKeepsEverything"]
    case .verifyCountsTombstones: ["verifyCountsWhatIsThere"]
    case .backupIsOld: ["aBackupEqualsTheStore"]
    case .backupReplaces: ["aBackupReplacesNothing"]
    case .createsWhileOpening: ["aRefusedOpenChangesNothing"]
    case .cutsWhileOpening: ["aCutIsReportedUntilItIsRecovered"]
    case .recoveryForgets: ["recoveryKeepsWhatWasHandedOut", "droppingLosesNothing"]
    }
  }

  /// Whether so much is wrong that most other rules fail too.
  var isBroad: Bool { self == .dropsTombstones || self == .handsOutTwice }

  func didOpen(_ isNew: inout Bool) throws {
    if self == .isNeverNew { isNew = false }
    if self == .isAlwaysNew { isNew = true }
  }

  func commit(of records: [StoredRecord]) -> UInt64? {
    switch self {
    case .commitFromRecords: records.map(\.revision.number).max() ?? 0
    case .forgetsCommitsWhenEmpty: records.allSatisfy { $0.value == nil } ? 0 : nil
    default: nil
    }
  }

  /// The change that it makes to the records that it hands out.
  func change(_ records: inout [StoredRecord]) {
    switch self {
    case .dropsTombstones: records.removeAll { $0.value == nil }
    case .handsOutTwice: records += records.prefix(1)
    case .losesManyRecords: records = Array(records.prefix(9_999))
    case .losesLargeValues: records.removeAll { $0.value?.count ?? 0 > 1 << 20 }
    case .losesPaths: records.removeAll { $0.key.text.hasPrefix("../") }
    case .losesTheEmptyKey: records.removeAll { $0.key.text.isEmpty }
    case .cutsVersions: records = records.map { $0.with(version: Int(Int16(truncatingIfNeeded: $0.schemaVersion))) }
    case .cutsRevisions: records = records.map { $0.with(revision: UInt64(UInt8(truncatingIfNeeded: $0.revision.number))) }
    case .reencodesValues: records = records.map { $0.with(value: $0.value.map(Self.reencode)) }
    case .takesNullForADeletion: records = records.map { $0.value == Data("null".utf8) ? $0.with(value: nil) : $0 }
    default: break
    }
  }

  func changeBatch(_ records: inout [StoredRecord]) {
    guard self == .splitsBatches, let first = records.first, records.last?.revision != first.revision else { return }
    records.removeAll { $0.collection != first.collection }
  }

  /// The address under which it keeps a record.
  func address(of record: StoredRecord) -> RecordAddress? {
    let (collection, key) = (record.collection, record.key.text)
    let wrong: (String, String)? =
      switch self {
      case .mergesCollections: ("one", key)
      case .mergesCollectionCases: (collection.lowercased(), key)
      case .cutsKeysAtNUL: (collection, String(key.prefix { $0 != "\0" }))
      case .normalisesKeys: (collection, key.precomposedStringWithCanonicalMapping)
      case .mergesKeyCases: (collection, key.lowercased())
      case .cutsLongKeys: (collection, String(key.prefix(255)))
      default: nil
      }
    return wrong.map { RecordAddress(collection: $0, key: RecordKey($1)) }
  }

  /// Whether it keeps an old record where a new one should take its place.
  func prefers(_ old: StoredRecord, to new: StoredRecord) -> Bool {
    switch self {
    case .firstOfABatchHolds: old.revision == new.revision
    case .tombstonesStick: old.value == nil
    default: false
    }
  }

  private static func reencode(_ value: Data) -> Data {
    do {
      let object = try JSONSerialization.jsonObject(with: value, options: .fragmentsAllowed)
      return try JSONSerialization.data(withJSONObject: object, options: [.fragmentsAllowed, .sortedKeys])
    } catch {
      return value
    }
  }
}

extension StoredRecord {
  fileprivate func with(version: Int) -> StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: version, value: value)
  }
  fileprivate func with(revision: UInt64) -> StoredRecord {
    StoredRecord(collection: collection, key: key, revision: Revision(revision), schemaVersion: schemaVersion, value: value)
  }
  fileprivate func with(value: Data?) -> StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: schemaVersion, value: value)
  }
}
