import Foundation

/// A search for places in one recorded answer, in the wire format of Open-Meteo's geocoding API.
package enum RecordedPlaces {
  /// Returns the status and body that answer a search.
  ///
  /// A name that is not in the recording gives an answer without results.
  package static func answer(_ query: [String: String]) -> (status: Int, body: String) {
    let count = query["count"].flatMap(Int.init) ?? 10
    guard (1...100).contains(count) else {
      return (400, #"{"error":true,"reason":"Parameter count must be between 1 and 100."}"#)
    }
    let name = (query["name"] ?? "").lowercased()
    let country = query["countryCode"]
    do {
      let body = try JSONSerialization.jsonObject(with: Data(PackageResources.places_json)) as? [String: Any]
      let results = (body?["results"] as? [[String: Any]] ?? []).filter {
        let found = ($0["name"] as? String ?? "").lowercased()
        // The service matches names of two letters exactly and longer ones fuzzily, for which a prefix stands here.
        return (name.count > 2 ? found.hasPrefix(name) : found == name) && (country == nil || $0["country_code"] as? String == country)
      }
      // The service leaves out `results` when there are none, and clients must handle the missing key.
      let answer: [String: Any] = results.isEmpty ? ["generationtime_ms": 0.1] : ["results": Array(results.prefix(count))]
      return (200, String(decoding: try JSONSerialization.data(withJSONObject: answer, options: [.sortedKeys]), as: UTF8.self))
    } catch {
      return (500, #"{"error":true,"reason":"Something went wrong."}"#)
    }
  }
}
