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

  /// Makes a policy; values outside their range are moved to its end: no time is longer than a hundred years.
  public init(fresh: Duration, usable: Duration, negative: Duration = .seconds(60), jitter: Double = 0.1) {
    self.fresh = fresh.bounded
    self.usable = max(usable.bounded, self.fresh)
    self.negative = negative.bounded
    self.jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
  }
}

extension Duration {
  /// A duration of hours, of 3,600 seconds each; of more than a duration's seconds can count, the longest.
  public static func hours(_ hours: some BinaryInteger) -> Duration {
    let most = Int64.max / 3_600
    return .seconds(min(max(Int64(clamping: hours), -most), most) * 3_600)
  }

  /// The longest time that the cache counts with: a hundred years, which can be added to any date and any time without overflow.
  static let longest: Duration = .seconds(3_155_760_000)

  /// A duration of seconds that somebody else has computed: at most ``longest`` either way, and zero for what is no number.
  init(bounding seconds: Double) {
    let most = Self.longest.inSeconds
    self = seconds.isNaN ? .zero : .seconds(min(max(seconds, -most), most))
  }

  /// The same, from zero up to ``longest``.
  var bounded: Duration { min(max(self, .zero), .longest) }
}
