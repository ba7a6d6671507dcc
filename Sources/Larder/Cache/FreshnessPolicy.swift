/// How long a fetched value is fresh, and how long it may be shown at all.
///
/// Both windows begin when the value was fetched. Inside the first it is *fresh*: served without asking the source. After it, inside the
/// second, it is *stale*: served when the source cannot be reached, or while it is asked. After the second it is *expired* and not served.
public struct FreshnessPolicy: Hashable, Sendable {
  /// How long a value is fresh.
  public let fresh: Duration
  /// How long a value may be served when there is nothing better; at least ``fresh``.
  ///
  /// Equal to ``fresh``, nothing stale is ever served.
  public let usable: Duration
  /// How long "there is none" is believed, unless the source says; a minute by default.
  public let negative: Duration
  /// By which part of itself ``fresh`` is shortened at most, at random for each value, so that values fetched together do not expire
  /// together: 0.1 by default, from 0 to 1.
  ///
  /// It never lengthens.
  public let jitter: Double

  /// Makes a policy; values outside their range are moved to its end.
  public init(fresh: Duration, usable: Duration, negative: Duration = .seconds(60), jitter: Double = 0.1) {
    self.fresh = max(fresh, .zero)
    self.usable = max(usable, self.fresh)
    self.negative = max(negative, .zero)
    self.jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
  }
}

extension Duration {
  /// A duration of hours, of 3,600 seconds each.
  public static func hours(_ hours: some BinaryInteger) -> Duration { .seconds(3_600) * hours }

  /// The duration in seconds, rounded.
  var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
