import Foundation
import Testing

@testable import Larder

/// The place of an app's data is the platform's.
@Suite(.timeLimit(.minutes(15))) struct DataDirectoryTests {
  @Test func theDirectoryHasTheNameThatIsGiven() {
    #expect(DataDirectory.url(for: "weather-spots").lastPathComponent == "weather-spots")
    #expect(!DataDirectory.url().lastPathComponent.isEmpty)
  }

  @Test func whatCanBeFetchedAgainIsInAnotherPlace() {
    #expect(DataDirectory.caches(for: "weather-spots").lastPathComponent == "weather-spots")
    #expect(DataDirectory.caches().lastPathComponent == DataDirectory.url().lastPathComponent)
    #expect(DataDirectory.caches() != DataDirectory.url())
  }

  #if os(Linux)
    @Test func theVariableIsFollowedUnlessItsPathIsRelative() {
      let url = DataDirectory.url(for: "app", environment: ["XDG_DATA_HOME": "/data", "HOME": "/home/me"])
      #expect(url.path == "/data/app")
      for environment in [["HOME": "/home/me"], ["HOME": "/home/me", "XDG_DATA_HOME": "data"], ["HOME": "/home/me", "XDG_DATA_HOME": ""]] {
        #expect(DataDirectory.url(for: "app", environment: environment).path == "/home/me/.local/share/app")
      }
    }

    @Test func theVariableOfCachesIsFollowedUnlessItsPathIsRelative() {
      let url = DataDirectory.caches(for: "app", environment: ["XDG_CACHE_HOME": "/caches", "XDG_DATA_HOME": "/data", "HOME": "/home/me"])
      #expect(url.path == "/caches/app")
      for environment in [
        ["HOME": "/home/me"], ["HOME": "/home/me", "XDG_CACHE_HOME": "caches"], ["HOME": "/home/me", "XDG_CACHE_HOME": ""],
      ] {
        #expect(DataDirectory.caches(for: "app", environment: environment).path == "/home/me/.cache/app")
      }
    }
  #endif
}
