import Foundation
import Larder
import Observation

#if canImport(SwiftUI)
  import SwiftUI
#endif

// MARK: Results

func follow(_ spots: LocalRepository<Spot>, show: ([Spot]) -> Void) async throws {
  let best = Query<Spot>().where(#Predicate { $0.country == "JP" }).sorted(by: \.rating, .reverse).limit(20)
  for try await items in spots.results(of: best) {
    show(items)  // now, and whenever the result differs
  }
}

// MARK: A view

@MainActor func observe(_ spots: LocalRepository<Spot>, redraw: @escaping @Sendable @MainActor () -> Void) -> LiveQuery<Spot> {
  let best = LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20))
  withObservationTracking {
    print(best.isLoading ? "loading" : "\(best.items.count) spots")
  } onChange: {
    Task { @MainActor in redraw() }
  }
  return best
}

struct BestSpots: View {
  @State private var best: LiveQuery<Spot>

  init(_ spots: LocalRepository<Spot>) {
    _best = State(initialValue: LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20)))
  }

  var body: some View {
    List(best.items) { spot in
      LabeledContent(spot.name, value: spot.rating, format: .number)
    }
    .overlay {
      if best.isLoading { ProgressView() }
      if let error = best.error { Text(error.localizedDescription) }
    }
  }
}

// MARK: Changes

func mirror(_ spots: LocalRepository<Spot>, to index: any SearchIndex) async throws {
  while !Task.isCancelled {
    do {
      for try await set in spots.changes(since: index.revision) {
        for change in set.changes {
          if let spot = change.new { index.put(spot) } else if change.kind == .deleted, let id = change.id { index.remove(id) }
        }
        index.revision = set.revision  // stored with what was made of the changes
      }
      return  // the store was closed
    } catch RepositoryError.Code.unsupported {
      // Too long ago: begin again with everything, and follow from the same commit.
      let snapshot = spots.snapshot
      index.removeAll()
      for spot in snapshot.loadAll() { index.put(spot) }
      index.revision = snapshot.revision
    } catch {
      throw error
    }
  }
}

/// Something outside of the store that is kept in step with it.
protocol SearchIndex: AnyObject {
  var revision: Revision { get set }
  func put(_ spot: Spot)
  func remove(_ id: UUID)
  func removeAll()
}
