import Foundation

/// The way to the servers of Open-Meteo: a GET, if its host may be asked, and the reading of what it answers.
struct OpenMeteoClient: Sendable {
  let servers: OpenMeteoServers
  let transport: any Transport
  let timeout: Duration
  /// The hosts that are not asked now; without it every request is made.
  let holds: Holds?
  let now: @Sendable () -> Date

  /// Sends one GET and reads the answer; a limit of requests whose window is known says how long to wait.
  func get<Answer>(
    _ url: URL, _ read: (TransportResponse) throws(ProviderError) -> Answer
  ) async throws(ProviderError) -> Answer {
    try holds?.check(url.hostAndPort)
    do throws(ProviderError) { return try await ask(url, read) } catch {
      await holds?.note(error, of: url)
      throw error
    }
  }

  private func ask<Answer>(
    _ url: URL, _ read: (TransportResponse) throws(ProviderError) -> Answer
  ) async throws(ProviderError) -> Answer {
    let response: TransportResponse
    do throws(TransportError) { response = try await transport.get(TransportRequest(url, timeout: timeout)) } catch {
      throw .network(error)
    }
    do throws(ProviderError) { return try read(response) } catch { throw error.waitingUntilWindowEnds(at: now()) }
  }
}
