internal import DequeModule

/// An order of eviction by recency and frequency: S3-FIFO (Yang et al., SOSP 2023).
///
/// A new key comes into a small queue, a tenth of all. One that was used by the time it is at the front goes on to the
/// main queue; one that was not leaves, and is remembered as a ghost for a while: if it comes again, it goes to the main
/// queue at once. There, a key that was used goes round again, once for each of up to three uses. So what is asked for
/// once, as in a scan, crowds out only what is as new.
struct EvictionOrder<Key: Hashable & Sendable>: Sendable {
  private struct Place: Sendable {
    var uses: UInt8 = 0
    var isMain: Bool
    /// The number of the one valid element with this key in the queues.
    let serial: UInt64
  }

  private struct Element: Sendable {
    let key: Key
    let serial: UInt64
  }

  private var places: [Key: Place] = [:]
  /// The queues hold elements of keys that were removed until they are met, or closed up.
  private var small: Deque<Element> = []
  private var main: Deque<Element> = []
  private var ghosts: Deque<Element> = []
  private var ghostSerials: [Key: UInt64] = [:]
  private var smallCount = 0
  private var serial: UInt64 = 0

  var count: Int { places.count }

  /// Notes a use.
  mutating func touch(_ key: Key) {
    guard let index = places.index(forKey: key) else { return }
    if places.values[index].uses < 3 { places.values[index].uses += 1 }
  }

  /// Adds a key as the newest; one that is there counts as used.
  mutating func insert(_ key: Key) {
    if places[key] != nil { return touch(key) }
    serial += 1
    let isMain = ghostSerials.removeValue(forKey: key) != nil
    places[key] = Place(isMain: isMain, serial: serial)
    if isMain {
      main.append(Element(key: key, serial: serial))
    } else {
      small.append(Element(key: key, serial: serial))
      smallCount += 1
    }
    closeUp()
  }

  /// Takes a key out; it leaves no ghost.
  mutating func remove(_ key: Key) {
    guard let place = places.removeValue(forKey: key) else { return }
    if !place.isMain { smallCount -= 1 }
  }

  /// Takes out the key that is least worth keeping.
  mutating func evict() -> Key? {
    if smallCount >= max(count / 10, 1), let key = evictFromSmall() { return key }
    return evictFromMain() ?? evictFromSmall()
  }

  private mutating func evictFromSmall() -> Key? {
    while let element = small.popFirst() {
      guard let place = places[element.key], place.serial == element.serial else { continue }
      smallCount -= 1
      guard place.uses == 0 else {
        places[element.key] = Place(isMain: true, serial: element.serial)
        main.append(element)
        continue
      }
      places[element.key] = nil
      remember(element)
      return element.key
    }
    return nil
  }

  private mutating func evictFromMain() -> Key? {
    while let element = main.popFirst() {
      guard let place = places[element.key], place.serial == element.serial else { continue }
      if place.uses == 0 {
        places[element.key] = nil
        return element.key
      }
      places[element.key]?.uses -= 1
      main.append(element)
    }
    return nil
  }

  /// Notes that a key has left the small queue: as many are remembered as there are keys.
  private mutating func remember(_ element: Element) {
    ghosts.append(element)
    ghostSerials[element.key] = element.serial
    while ghosts.count > max(count, 1), let oldest = ghosts.popFirst() {
      if ghostSerials[oldest.key] == oldest.serial { ghostSerials[oldest.key] = nil }
    }
  }

  /// Drops the elements of removed keys once they are the larger part.
  private mutating func closeUp() {
    guard small.count + main.count > 2 * places.count + 64 else { return }
    let places = places
    small.removeAll { places[$0.key]?.serial != $0.serial }
    main.removeAll { places[$0.key]?.serial != $0.serial }
  }
}
