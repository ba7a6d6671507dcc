public import Foundation
public import Larder

extension SQLiteBackend {
  /// Reads a copy as a read-only store does, without a lock.
  /// - Throws: as `StorageBackend.readCopy(at:_:)`.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let copy = SQLiteBackend(file: url)
    let report = try copy.open(StoreOptions(access: .readOnly), visit)
    try copy.close()
    return report
  }
}
