// Recorded/ has the provider without a network: recorded weather with new dates, which is marked as recorded wherever it is shown.

public import Foundation

extension OpenMeteoProvider {
  /// Creates a provider that answers any place and day from recordings.
  ///
  /// Use it for demos and to try things out, since the data are not the weather: ``Provenance/isRecorded`` is set on all of them. The bytes
  /// of a recording are decoded like Open-Meteo's answers. Each request has one place, and none counts against a quota.
  public static func recorded(now: @escaping @Sendable () -> Date = { Date() }) -> OpenMeteoProvider {
    let servers = OpenMeteoServers(URL(string: "recorded://recordings") ?? URL(filePath: "/"))
    let client = OpenMeteoClient(servers: servers, transport: RecordedTransport(now: now), timeout: .seconds(10), holds: nil, now: now)
    // One place per request, because a recording answers a single place.
    return OpenMeteoProvider(name: "recorded", storageName: "recorded", client: client, placesPerRequest: 1, isCounted: false)
  }
}
