public import ArgumentParser
public import WeatherSpotsKit

extension SpotOrder: ExpressibleByArgument {}
