import Foundation

/// HTTP client for Open-Meteo, which sends a GET unless its host is on hold and decodes the response.
struct OpenMeteoClient: Sendable {
  let servers: OpenMeteoServers
  let transport: any Transport
  let timeout: Duration
  /// Hosts to which no request is sent for now.
  ///
  /// Without it every request is sent.
  let holds: Holds?
  let now: @Sendable () -> Date

  /// Sends one GET and decodes the response.
  ///
  /// - Throws: ``ProviderError``. A rate-limit error has the wait until its window ends.
  func get<Answer>(
    _ url: URL, _ read: (TransportResponse) throws(ProviderError) -> Answer
  ) async throws(ProviderError) -> Answer {
    // Before the request: a host that asked for time must not get one more, from this run or the next.
    try holds?.check(url.hostAndPort)
    do throws(ProviderError) { return try await ask(url, read) } catch {
      // Only an error with a wait of five seconds or more becomes a hold.
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
    // Open-Meteo sends no Retry-After. Without a computed wait the retries would hit the same window again.
    do throws(ProviderError) { return try read(response) } catch { throw error.waitingUntilWindowEnds(at: now()) }
  }
}
