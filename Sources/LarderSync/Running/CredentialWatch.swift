internal import Larder

/// A transport whose credentials may change after the server has refused some.
protocol CredentialedTransport: SyncTransport {
  /// Returns whether the next request has other credentials than the server has last refused.
  func hasOtherCredentials() async -> Bool
}

/// The wait for other credentials after the server has refused some.
///
/// The engine asks the app for them and not the server, so that a device with a token that has run out sends nothing meanwhile.
struct CredentialWatch: Sendable {
  let transport: any CredentialedTransport
  let clock: any WallClock

  /// The time between two questions to the app.
  static let interval = Duration.seconds(5)

  /// Returns true once there are other credentials; false when the task is cancelled.
  func wait() async -> Bool {
    while true {
      do { try await clock.sleep(for: Self.interval) } catch { return false }
      if await transport.hasOtherCredentials() { return !Task.isCancelled }
    }
  }
}
