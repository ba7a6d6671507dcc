/// A warning as it is shown, always with the same keys.
public typealias AlertReport = EveryKey<WeatherAlert>
