// Recorded/ has the provider that needs no network: weather that others recorded, dated anew, and marked as such wherever it is shown.

public import Foundation

extension OpenMeteoProvider {
  /// Makes the provider of recorded weather, for any place and day: for the demo and for trying things out.
  ///
  /// It is not the weather: ``Provenance/isRecorded`` is set on everything that it answers. It goes the way of Open-Meteo's answers from
  /// the bytes on, one place at a time, and counts nothing.
  public static func recorded(now: @escaping @Sendable () -> Date = { Date() }) -> OpenMeteoProvider {
    let servers = OpenMeteoServers(URL(string: "recorded://recordings") ?? URL(filePath: "/"))
    let client = OpenMeteoClient(servers: servers, transport: RecordedTransport(now: now), timeout: .seconds(10), holds: nil, now: now)
    return OpenMeteoProvider(name: "recorded", storageName: "recorded", client: client, placesPerRequest: 1, isCounted: false)
  }
}
