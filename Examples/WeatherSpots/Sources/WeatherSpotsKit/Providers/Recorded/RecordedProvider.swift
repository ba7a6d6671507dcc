// Recorded/ has the provider that needs no network: weather that others recorded, dated anew, and marked as such wherever it is shown.

public import Foundation

/// Recorded weather for any place and day, for the demo and for trying things out.
///
/// It is not the weather: ``Provenance/isRecorded`` is set on everything that it answers. It goes the way of Open-Meteo's answers from the
/// bytes on.
public struct RecordedProvider: ForecastProvider {
  private let provider: OpenMeteoProvider

  /// Makes a provider.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    let server = OpenMeteoServers(URL(string: "recorded://recordings") ?? URL(filePath: "/"))
    let client = OpenMeteoClient(servers: server, transport: RecordedTransport(now: now), timeout: .seconds(10), hosts: nil, now: now)
    provider = OpenMeteoProvider(name: "recorded", storageName: "recorded", client: client)
  }

  /// The name that its data are kept under.
  public var name: String { provider.name }
  /// The credit of those whose data were recorded.
  public var attribution: [String] { provider.attribution }
  /// No.
  public var needsCountry: Bool { false }
  /// Returns the recorded kinds of data.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    try await provider.availability(at: place)
  }
  /// As Open-Meteo.
  public func service(of dataset: WeatherDataset) -> String? { provider.service(of: dataset) }
  /// Nothing.
  public func weight(of request: ProviderRequest) -> Double { 0 }
  /// Answers from the recordings.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer { await provider.fetch(request) }
}
