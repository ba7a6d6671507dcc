import Foundation

@testable import Larder

extension LocalRepository {
  /// Returns the name of an index in the storage whose keys are not those of the records, or `nil`.
  nonisolated func wrongStoredIndex() async throws -> String? {
    let core = core
    let (base, state): (any StoredBase, CollectionState) = try await core.executor.run { [collection] () throws(RepositoryError) in
      guard let backend = core.backend as? any PagingBackend else { throw RepositoryError(.unsupported, "no paging") }
      return (try backend.keepBase(), core.state.collections[collection])
    }
    for (index, id) in state.indexes.storedIDs(of: schema.name) {
      guard state.indexes.storedEntries(index) != nil else { continue }
      var expected: [Data] = []
      try state.records.visitOrdered(by: .bytes) { slot in
        if let entry = state.indexes.definitions[index].entry(slot) { expected.append(IndexKey.bytes(of: entry)) }
        return true
      }
      expected.sort { $0.precedes($1) }
      if expected != (try base.indexKeys(of: id, from: Data(), below: nil)) { return id.name }
      if expected.count != (try base.indexKeyCount(of: id, from: Data(), below: nil)) { return id.name }
    }
    return nil
  }

  /// Whether an ordered index is read from the storage.
  nonisolated func isStored(_ index: Int = 0) -> Bool { core.state.collections[collection].indexes.storedEntries(index) != nil }
}
