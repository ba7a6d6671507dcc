extension Browser {
  /// A look that the user prefers.
  enum ColorScheme: String { case light, dark }

  /// Makes the window prefer a look, and less motion.
  func prefer(_ scheme: ColorScheme, reducedMotion: Bool = false) async throws {
    let motion: JSON = reducedMotion ? "reduce" : "no-preference"
    _ = try await devTools(
      "Emulation.setEmulatedMedia",
      [
        "features": [
          ["name": "prefers-color-scheme", "value": .string(scheme.rawValue)], ["name": "prefers-reduced-motion", "value": motion],
        ]
      ])
  }

  /// Gives the window a screen of a size, also of one that no real window has.
  func emulateScreen(width: Int, height: Int, scale: Double = 1, isMobile: Bool = false) async throws {
    let metrics: JSON = [
      "width": .number(Double(width)), "height": .number(Double(height)), "deviceScaleFactor": .number(scale), "mobile": .bool(isMobile),
    ]
    _ = try await devTools("Emulation.setDeviceMetricsOverride", metrics)
    _ = try await devTools("Emulation.setTouchEmulationEnabled", ["enabled": .bool(isMobile)])
  }

  /// Gives the window its own screen back.
  func stopEmulatingScreen() async throws {
    _ = try await devTools("Emulation.clearDeviceMetricsOverride")
    _ = try await devTools("Emulation.setTouchEmulationEnabled", ["enabled": false])
  }

  /// Grants permissions, by the names of the DevTools protocol (`geolocation`, `notifications`), to the pages of an origin.
  func grant(_ permissions: [String], to origin: String) async throws {
    let names = JSON.array(permissions.map { .string($0) })
    _ = try await devTools("Browser.grantPermissions", ["permissions": names, "origin": .string(origin)])
  }

  /// Puts the device somewhere.
  func setLocation(latitude: Double, longitude: Double, accuracy: Double = 10) async throws {
    let place: JSON = ["latitude": .number(latitude), "longitude": .number(longitude), "accuracy": .number(accuracy)]
    _ = try await devTools("Emulation.setGeolocationOverride", place)
  }

  /// Puts the device into a time zone, by its name.
  func setTimeZone(_ name: String) async throws {
    _ = try await devTools("Emulation.setTimezoneOverride", ["timezoneId": .string(name)])
  }

  /// Cuts the window off from every server, loopback too, or connects it again.
  func setOffline(_ isOffline: Bool) async throws {
    _ = try await devTools("Network.enable")
    let conditions: JSON = ["offline": .bool(isOffline), "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1]
    _ = try await devTools("Network.emulateNetworkConditions", conditions)
  }
}
