import Astronomy
import Foundation

extension Astronomy {
  /// Returns the sunrises and sunsets of the day as text, in order of time.
  public func sunParts(_ style: CardStyle) -> [String] { events(sun.state, sun.rises, sun.sets, style) }

  /// Returns the moonrises and moonsets of the day as text, in order of time, then the Moon's phase and lit part.
  public func moonParts(_ style: CardStyle) -> [String] {
    let symbol = style.isPlain ? "" : moon.phase.symbol(isSouthern: coordinate.latitude < 0) + " "
    let lit = "\((moon.illuminatedFraction * 100).text(decimals: 0)) % lit"
    return events(moon.state, moon.rises, moon.sets, style) + [symbol + moon.phase.name, lit]
  }

  private func events(_ state: HorizonState, _ rises: [Date], _ sets: [Date], _ style: CardStyle) -> [String] {
    switch state {
    case .alwaysUp: return ["up all day"]
    case .alwaysDown: return ["down all day"]
    case .risesAndSets, .risesOnly, .setsOnly:
      let events = rises.map { ($0, style.isPlain ? "rises " : "↑ ") } + sets.map { ($0, style.isPlain ? "sets " : "↓ ") }
      // The Moon often sets before it rises within a day.
      return events.sorted { $0.0 < $1.0 }.map { $0.1 + clock($0.0) }
    }
  }
}
