public import ArgumentParser
public import WeatherSpotsKit

extension UnitSystem: ExpressibleByArgument {}
