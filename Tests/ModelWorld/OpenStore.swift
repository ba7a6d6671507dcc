internal import Larder

/// A store that is open.
struct OpenStore {
  let store: Store
  let places: LocalRepository<Place>
  let notes: LocalRepository<Note>

  /// Everything in it, by what its snapshots say.
  var contents: Model.State {
    get throws {
      let (places, notes) = (places.snapshot, notes.snapshot)
      return Model.State(
        places: Dictionary(try places.loadAll(strict: true).map { ($0.id, $0) }) { $1 },
        notes: Dictionary(try notes.loadAll(strict: true).map { ($0.id, $0) }) { $1 })
    }
  }
}
