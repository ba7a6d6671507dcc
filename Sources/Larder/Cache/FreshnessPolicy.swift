/// The times for which a fetched value is fresh, and for which it may be shown at all.
///
/// ```swift
/// FreshnessPolicy.hours(1)                                                         // fresh for an hour, usable for two days
/// FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48))                       // the same, with both times
/// FreshnessPolicy(fresh: .seconds(300), usable: .seconds(300))                     // a warning: never shown when it is old
/// FreshnessPolicy(fresh: .hours(24), usable: .hours(24 * 30), negative: .hours(1)) // "there is none" holds for an hour
/// ```
///
/// Both windows begin when the value was fetched. Inside the first it is *fresh*: served without asking the source. After it, inside the
/// second, it is *stale*: served when the source cannot be reached, or while it is asked. After the second it is *expired* and not served.
/// A policy is applied when a value is stored: another policy at the next start does not change what is stored already.
///
/// ## Cost
///
/// The ends of both windows are stored with each value, so that its state costs two comparisons of times. Windows free no space:
/// expired values are removed when an ``EvictionPolicy`` wants room.
///
/// ## Topics
///
/// ### Making a policy
/// - ``init(fresh:usable:negative:jitter:)``
/// - ``init(fresh:negative:jitter:)``
/// - ``seconds(_:)``
/// - ``minutes(_:)``
/// - ``hours(_:)``
/// - ``days(_:)``
///
/// ### Windows of a value
/// - ``fresh``
/// - ``usable``
/// - ``jitter``
///
/// ### Absence
/// - ``negative``
public struct FreshnessPolicy: Hashable, Sendable {
  /// The time for which a value is fresh.
  public let fresh: Duration
  /// The time for which a value may be served when there is nothing newer; at least ``fresh``.
  ///
  /// Equal to ``fresh``, nothing stale is ever served.
  public let usable: Duration
  /// The time for which the answer "there is none" holds, unless the source gives one; a minute by default.
  public let negative: Duration
  /// The largest share of ``fresh`` that is taken off, at random for each value, so that values fetched together do not expire together:
  /// 0.1 by default, from 0 to 1.
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

extension FreshnessPolicy {
  /// Makes a policy from the time for which a value is fresh alone.
  ///
  /// A value is usable for 48 hours, or for as long as it is fresh where that is longer.
  public init(fresh: Duration, negative: Duration = .seconds(60), jitter: Double = 0.1) {
    self.init(fresh: fresh, usable: .hours(48), negative: negative, jitter: jitter)
  }

  /// Returns a policy whose values are fresh for this many seconds; see ``init(fresh:negative:jitter:)``.
  public static func seconds(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 1, count: count)) }

  /// Returns a policy whose values are fresh for this many minutes; see ``init(fresh:negative:jitter:)``.
  public static func minutes(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 60, count: count)) }

  /// Returns a policy whose values are fresh for this many hours; see ``init(fresh:negative:jitter:)``.
  public static func hours(_ count: some BinaryInteger) -> Self { Self(fresh: .hours(count)) }

  /// Returns a policy whose values are fresh for this many days of 24 hours; see ``init(fresh:negative:jitter:)``.
  public static func days(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 86_400, count: count)) }
}

extension Duration {
  /// Returns a duration of hours, of 3,600 seconds each; of more than a duration can count, the longest.
  public static func hours(_ hours: some BinaryInteger) -> Duration { units(of: 3_600, count: hours) }

  /// Returns a duration of so many units; of more than a duration can count, the longest.
  fileprivate static func units(of seconds: Int64, count: some BinaryInteger) -> Duration {
    let most = Int64.max / seconds
    return .seconds(min(max(Int64(clamping: count), -most), most) * seconds)
  }

  /// The longest time that the cache counts with: a hundred years, which can be added to any date and any time without overflow.
  static let longest: Duration = .seconds(3_155_760_000 as Int64)

  /// Makes a duration of seconds from an untrusted number: at most ``longest`` either way, and zero for what is no number.
  init(bounding seconds: Double) {
    let most = Self.longest.inSeconds
    self = seconds.isNaN ? .zero : .seconds(min(max(seconds, -most), most))
  }

  /// The duration, moved into the range from zero to ``longest``.
  var bounded: Duration { min(max(self, .zero), .longest) }
}
