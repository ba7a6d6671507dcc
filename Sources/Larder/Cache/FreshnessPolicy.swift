/// The times for which a fetched value is fresh, and for which it may be used at all.
///
/// ```swift
/// FreshnessPolicy.hours(1)                                                         // fresh for an hour, usable for two days
/// FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48))                       // the same, with both times
/// FreshnessPolicy(fresh: .seconds(300), usable: .seconds(300))                     // a warning: never shown after five minutes
/// FreshnessPolicy(fresh: .hours(24), usable: .hours(24 * 30), negative: .hours(1)) // "there is none" holds for an hour
/// ```
///
/// The fresh window and the usable window of a value begin at its fetch. In the fresh window the value is *fresh*, and is returned without
/// a request. From the end of the fresh window to the end of the usable window the value is *stale*. A stale value is returned if the
/// source fails, or while it is refreshed. After the usable window the value is *expired*, and is not returned. The policy sets the windows
/// when a value is stored. Another policy at the next launch does not change the windows of stored values.
///
/// ## Cost
///
/// The ends of both windows are stored with each value, so the cache finds the state of a value by two comparisons of times. Expired values
/// still take space, until they are removed because an ``EvictionPolicy`` needs room.
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
  /// Time for which a value is fresh.
  public let fresh: Duration
  /// Time after its fetch for which a value may be used if there is no newer value.
  ///
  /// `usable` is at least ``fresh``.
  ///
  /// If `usable` equals ``fresh``, a value is stale only for the time that ``jitter`` or the source takes off its fresh time.
  public let usable: Duration
  /// Time for which the answer "there is none" holds, unless the source gives another time.
  ///
  /// By default, the answer "there is none" holds for one minute.
  public let negative: Duration
  /// Largest share of ``fresh`` that is taken off a value's fresh time, from 0 to 1.
  ///
  /// The default jitter is 0.1, which takes up to a tenth off the fresh time.
  ///
  /// The share that is taken off is random for each value, so that values which were fetched together do not become stale together. Jitter
  /// never lengthens the fresh time.
  public let jitter: Double

  /// Makes a freshness policy.
  ///
  /// An argument outside its range is moved to the nearest end of the range. A time of more than a hundred years becomes a hundred years,
  /// and a jitter that is infinite or `NaN` becomes 0.
  public init(fresh: Duration, usable: Duration, negative: Duration = .seconds(60), jitter: Double = 0.1) {
    self.fresh = fresh.bounded
    self.usable = max(usable.bounded, self.fresh)
    self.negative = negative.bounded
    self.jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
  }
}

extension FreshnessPolicy {
  /// Makes a policy whose usable time follows from the fresh time.
  ///
  /// A value is usable for 48 hours, or for the fresh time if that is longer.
  public init(fresh: Duration, negative: Duration = .seconds(60), jitter: Double = 0.1) {
    self.init(fresh: fresh, usable: .hours(48), negative: negative, jitter: jitter)
  }

  /// Returns a policy with a fresh time of `count` seconds.
  ///
  /// The usable time is 48 hours, or the fresh time if that is longer, as in ``init(fresh:negative:jitter:)``.
  public static func seconds(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 1, count: count)) }

  /// Returns a policy with a fresh time of `count` minutes.
  ///
  /// The usable time is 48 hours, or the fresh time if that is longer, as in ``init(fresh:negative:jitter:)``.
  public static func minutes(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 60, count: count)) }

  /// Returns a policy with a fresh time of `count` hours.
  ///
  /// The usable time is 48 hours, or the fresh time if that is longer, as in ``init(fresh:negative:jitter:)``.
  public static func hours(_ count: some BinaryInteger) -> Self { Self(fresh: .hours(count)) }

  /// Returns a policy with a fresh time of `count` days of 24 hours.
  ///
  /// The usable time is 48 hours, or the fresh time if that is longer, as in ``init(fresh:negative:jitter:)``.
  public static func days(_ count: some BinaryInteger) -> Self { Self(fresh: .units(of: 86_400, count: count)) }
}

extension Duration {
  /// Returns a duration of a number of hours, clamped to the seconds that an `Int64` holds.
  public static func hours(_ hours: some BinaryInteger) -> Duration { units(of: 3_600, count: hours) }

  /// Returns a duration of `count` units of `seconds`, limited to the range of 64-bit seconds.
  fileprivate static func units(of seconds: Int64, count: some BinaryInteger) -> Duration {
    // The count may be an untrusted number. The count is clamped before the multiplication, because an overflow would trap.
    let most = Int64.max / seconds
    return .seconds(min(max(Int64(clamping: count), -most), most) * seconds)
  }

  /// The longest time that the cache computes with, which is a hundred years.
  ///
  /// The addition of this duration to a date or time of today cannot overflow.
  static let longest: Duration = .seconds(3_155_760_000 as Int64)

  /// Makes a duration from an untrusted number of seconds, at most ``longest`` in either direction.
  ///
  /// If `seconds` is `NaN`, the duration is zero.
  init(bounding seconds: Double) {
    let most = Self.longest.inSeconds
    self = seconds.isNaN ? .zero : .seconds(min(max(seconds, -most), most))
  }

  /// The duration, clamped to the range from zero to ``longest``.
  var bounded: Duration { min(max(self, .zero), .longest) }
}
