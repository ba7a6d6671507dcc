internal import LarderTesting
internal import TestSupport

/// A letter of the alphabet.
enum Step: Int, CaseIterable, Sendable {
  case find, count, snapshotRead, revision, query, pages
  case save, saveMany, insert, update, delete, deleteMany, replaceAll, compareAndSet, saveNote, deleteNote, findNote
  case transaction
  case changes, results, resume, keepSnapshot, compareSnapshots, compareAll
  case cached, invalidate, emptyCache, remoteChange, passTime, setClock, reopenCache
  case putBlob, getBlob, blobInfo, removeBlob, reopenBlobs
  case flush, checkpoint, verify, backup, reopen, migrate, killedMigration, finishMigration, olderSchema
  case crash, crashAmidWrites, secondOpener, damage, damagedBlobs

  /// How often it comes beside the others.
  private var weight: Int {
    switch self {
    case .find: 30_000
    case .snapshotRead: 10_000
    case .revision: 8_000
    case .count, .findNote: 6_000
    case .save, .cached: 6_500
    case .query, .blobInfo: 4_000
    case .update, .insert, .delete: 3_000
    case .compareAndSet, .transaction, .saveNote, .getBlob: 1_500
    case .remoteChange, .passTime: 1_000
    case .saveMany: 800
    case .changes, .results, .keepSnapshot, .compareSnapshots, .compareAll: 300
    case .deleteNote, .deleteMany, .invalidate, .setClock, .putBlob: 300
    case .replaceAll, .pages, .removeBlob, .resume, .flush: 100
    case .checkpoint, .reopen, .crash, .reopenCache: 60
    case .crashAmidWrites, .damage, .migrate, .finishMigration, .reopenBlobs, .verify, .emptyCache: 40
    case .killedMigration, .backup, .olderSchema, .damagedBlobs, .secondOpener: 30
    }
  }

  /// Whether it is one of those by which the surroundings of a store change: they come more often in runs of the teeth.
  var isRare: Bool { weight <= 300 }

  /// The steps, each as often as its weight says.
  static let table: [Step] = allCases.flatMap { Array(repeating: $0, count: $0.weight / 10) }
  /// The steps with the rare ones twenty times as often.
  static let eventful: [Step] = allCases.flatMap { Array(repeating: $0, count: $0.weight / 10 * ($0.isRare ? 20 : 1)) }
}
