/// A weather warning as JSON, with every key even where the value is missing.
public typealias AlertReport = EveryKey<WeatherAlert>
