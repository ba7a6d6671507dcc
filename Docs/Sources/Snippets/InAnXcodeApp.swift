import Foundation
import Larder
import Observation

#if canImport(SwiftUI)
  import SwiftUI
#endif

// MARK: One store

@MainActor @Observable final class SpotStore {
  private(set) var spots: LocalRepository<Spot>?
  private(set) var message: String?
  private var isOpening = false

  func open() async {
    guard spots == nil, !isOpening else { return }  // a second window asks, too
    isOpening = true
    defer { isOpening = false }
    do throws(RepositoryError) {
      spots = try await LocalRepository(filename: "spots.json")
      message = nil
    } catch {
      message = error.localizedDescription
    }
  }
}

struct SurfApp: App {  // yours begins with @main
  @State private var store = SpotStore()

  var body: some Scene {
    WindowGroup { RootView(store: store) }
  }
}

struct RootView: View {
  let store: SpotStore

  var body: some View {
    VStack {
      if let spots = store.spots {
        SpotListView(spots)
      } else if let message = store.message {
        Text(message)
      } else {
        ProgressView()
      }
    }
    .task { await store.open() }
  }
}

// MARK: Buttons

struct SpotListView: View {
  private let spots: LocalRepository<Spot>
  @State private var live: LiveQuery<Spot>
  @State private var message: String?

  init(_ spots: LocalRepository<Spot>) {
    self.spots = spots
    _live = State(initialValue: LiveQuery(spots, Query().sorted(by: \.name)))
  }

  var body: some View {
    List(live.items) { spot in
      Button("\(spot.name) \(spot.rating)") { rate(spot) }
    }
    Button("Add Jogashima") { add() }
    if let message { Text(message) }
  }

  private func add() {
    Task {
      do throws(RepositoryError) {
        try await spots.save(Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5))
        message = nil
      } catch {
        message = error.code == .full ? "There is no space left. Nothing was saved." : error.localizedDescription
      }
    }
  }

  private func rate(_ spot: Spot) {
    Task {
      do {
        try await spots.update(spot.id) { $0.rating += 1 }
      } catch RepositoryError.Code.notFound {
        message = "\(spot.name) was deleted meanwhile."
      } catch {
        message = error.localizedDescription
      }
    }
  }
}

// MARK: Enumerations

nonisolated enum Wind: String, Codable, IndexableValue { case offshore, onshore, none }

nonisolated struct Session: Codable, Identifiable, Sendable {
  let id: UUID
  var wind: Wind
  var day: Date

  static let schema = RepositorySchema<Session>(indexes: [.ordered(\.wind, \.day)])
}

func offshoreSessions(_ sessions: LocalRepository<Session>) async throws -> [Session] {
  let wanted = Wind.offshore
  let found = try await sessions.fetch(Query().where(#Predicate { $0.wind == wanted }).sorted(by: \.day))
  return found
}

// MARK: Previews

extension Spot {
  static let samples = [
    Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5),
    Spot(id: UUID(), name: "Punta de Lobos", country: "CL", rating: 4),
  ]
}

#if canImport(SwiftUI)
  #Preview {
    SpotListView(LocalRepository(previewing: Spot.samples))
  }
#endif

func sampleSpots() -> LocalRepository<Spot> {
  let spots = LocalRepository(previewing: Spot.samples)
  return spots
}

// MARK: Files

func forecastFile() -> URL {
  let url = DataDirectory.caches().appending(path: "forecasts.json")
  return url
}

func openInBackground() async throws(RepositoryError) -> LocalRepository<Spot>? {
  do throws(RepositoryError) {
    return try await LocalRepository<Spot>(filename: "spots.json")
  } catch {
    if error.code == .protectedDataUnavailable { return nil }  // not unlocked since the device started: try again later
    throw error
  }
}

// MARK: App groups

extension SpotStore {
  func suspend() async { await spots?.suspend() }

  func resume() async {
    do throws(RepositoryError) {
      try await spots?.resume()
      message = nil
    } catch {
      // Another process has the store, or another file is in its place: reads go on, and the next call tries again.
      message = error.localizedDescription
    }
  }
}

struct SuspendingRootView: View {
  let store: SpotStore
  @Environment(\.scenePhase) private var phase
  @State private var last: Task<Void, Never>?

  var body: some View {
    RootView(store: store)
      .onChange(of: phase) { _, phase in
        last = Task { [last] in
          await last?.value  // a user who is back at once must not be overtaken
          switch phase {
          case .background: await store.suspend()
          case .active: await store.resume()
          default: break
          }
        }
      }
  }
}

#if os(iOS) && canImport(UIKit)
  import UIKit

  @MainActor func suspend(_ store: SpotStore) {
    let application = UIApplication.shared
    let task = application.beginBackgroundTask(withName: "Suspend the store")
    Task {
      await store.suspend()
      application.endBackgroundTask(task)
    }
  }

  nonisolated func suspendInAnExtension(_ spots: LocalRepository<Spot>) {
    // The system calls the closure on a thread of its own, and lets the process live until it returns.
    ProcessInfo.processInfo.performExpiringActivity(withReason: "Suspend the store") { isExpired in
      guard !isExpired else { return }
      let isOver = DispatchSemaphore(value: 0)
      Task {
        await spots.suspend()
        isOver.signal()
      }
      isOver.wait()
    }
  }
#endif

#if canImport(Darwin)
  func fileOfTheGroup() -> URL? {
    let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: "group.org.example.surf")?
      .appending(path: "spots.sqlite")
    return url
  }
#endif
