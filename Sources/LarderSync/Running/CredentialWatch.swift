internal import Larder

/// A transport whose credentials may change after the server has refused some.
protocol CredentialedTransport: SyncTransport {
  /// Returns whether the server has refused the credentials, or the app had none.
  func lacksCredentials() async -> Bool
  /// Returns whether the next request has other credentials than the server has last refused.
  func hasOtherCredentials() async -> Bool
}

/// The wait for other credentials after the server has refused some: the app is asked, and not the server.
struct CredentialWatch: Sendable {
  let transport: any CredentialedTransport
  let clock: any WallClock
  /// The time between two questions to the app.
  let interval: Duration

  /// The shortest ``interval``.
  static let shortest = Duration.seconds(5)

  /// Returns true once there are other credentials; false when the task is cancelled.
  func wait() async -> Bool {
    while true {
      do { try await clock.sleep(for: interval) } catch { return false }
      if await transport.hasOtherCredentials() { return !Task.isCancelled }
    }
  }
}
