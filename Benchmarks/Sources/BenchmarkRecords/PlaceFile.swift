import Foundation

/// The places of GeoNames that come with this package; see Data/README.md for where they are from.
package enum PlaceFile {
  /// Returns the first records of the list; once it is used up it begins again, with other ids and slugs.
  ///
  /// - Throws: ``PlaceFileError`` when the file cannot be unpacked, or has no places in it.
  package static func places(_ count: Int) throws -> [Place] { try places(count, in: unpacked()) }

  /// Returns the first records of a list that was unpacked before.
  package static func places(_ count: Int, in text: Data) throws -> [Place] {
    let rows = try rows(text, atMost: count)
    guard !rows.isEmpty else { throw PlaceFileError("expected places, found none") }
    return (0..<count).map { Place(rows[$0 % rows.count], turn: $0 / rows.count) }
  }

  private static func rows(_ text: Data, atMost limit: Int) throws -> [PlaceRow] {
    try text.split(separator: UInt8(ascii: "\n")).dropFirst().prefix(limit).map { line in
      guard let row = PlaceRow(line) else {
        throw PlaceFileError("expected seven columns and five numbers among them, found \(String(decoding: line, as: UTF8.self))")
      }
      return row
    }
  }

  /// Returns the list as text, unpacked by `gzip`, which every system has that Larder is developed on.
  private static func unpacked() throws -> Data {
    guard let file = Bundle.module.url(forResource: "places.tsv", withExtension: "gz") else {
      throw PlaceFileError("expected places.tsv.gz among the resources, found nothing; build this package again")
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["gzip", "-dc", file.path]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw PlaceFileError("gzip could not unpack \(file.path)") }
    return text
  }
}

/// A reason for which the places are not there.
package struct PlaceFileError: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

/// One line of the list.
struct PlaceRow {
  let number: Int
  let name: String
  let latitude: Double
  let longitude: Double
  let timezone: String
  let country: String
  let population: Int

  init?(_ line: Data) {
    let columns = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    guard columns.count == 7, let number = Int(columns[0]), let latitude = Double(columns[2]), let longitude = Double(columns[3]),
      let population = Int(columns[6])
    else { return nil }
    (self.number, name, self.latitude, self.longitude) = (number, columns[1], latitude, longitude)
    (timezone, country, self.population) = (columns[4], columns[5], population)
  }
}
