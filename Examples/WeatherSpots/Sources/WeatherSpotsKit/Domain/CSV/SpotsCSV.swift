/// The result of reading a CSV file of spots: the valid spots and the problems of the invalid rows.
public struct SpotsCSV: Sendable {
  /// Spots of the valid rows, in the order of the file.
  public var spots: [Spot] = []
  /// Problems of the invalid rows, in the order of the file.
  public var problems: [RowProblem] = []
  /// The problem of a header row that does not name the columns, or `nil` for a valid header.
  ///
  /// If there is one, no further row of the file is read.
  public private(set) var headerProblem: RowProblem?

  /// Number of rows below the header.
  public var rowCount: Int { spots.count + problems.count }

  /// Reads a CSV file of spots that begins with a header row.
  ///
  /// Columns may be in any order, and unknown columns are ignored.
  ///
  /// - Parameter progress: Called after every 4,096 rows and at the end with the part that is done, 0 to 1.
  public init(_ bytes: [UInt8], progress: (Double) -> Void = { _ in }) {
    var reader = CSVReader(bytes)
    let columns: Columns
    do throws(RowProblem) { columns = try Self.header(&reader) } catch {
      headerProblem = error
      return
    }
    while let row = reader.next() {
      do throws(RowProblem) { spots.append(try Self.spot(try row.get(), of: reader, columns)) } catch {
        // One bad row does not end the reading, so that a person can correct all of them at once.
        problems.append(error)
      }
      if rowCount.isMultiple(of: 4096) { progress(Double(reader.position) / Double(max(reader.byteCount, 1))) }
    }
    progress(1)
  }

  private static func header(_ reader: inout CSVReader) throws(RowProblem) -> Columns {
    guard let first = reader.next() else {
      throw RowProblem(line: 1, column: 1, reason: "the file is empty; its first row must name the columns")
    }
    let record = try first.get()
    // Spreadsheets of many languages write semicolons. "Column not named" would not lead anybody to that cause.
    if let name = record.fields.first, record.fields.count == 1, let mark = name.utf8.first(where: Byte.isSeparatorElsewhere) {
      let shown = Byte.label(ofSeparator: mark)
      throw reader.problem(in: record, field: 0, "the first row has one column, and \(shown) in its name; \(Byte.hint(onSeparator: mark))")
    }
    let columns = Columns(record.fields)
    // Either of two columns of one name could be the right one, and a silent choice would lose the other's values.
    if let (field, index) = columns.repeated {
      throw reader.problem(in: record, field: index, "the first row names the column \(field.rawValue) twice")
    }
    // Checked once here, or each row of the file would report the same missing column.
    for field in SpotField.allCases where field.isRequired && columns.indices[field] == nil {
      throw reader.problem(in: record, field: 0, "the first row does not name the column \(field.rawValue)")
    }
    return columns
  }

  private static func spot(_ record: CSVReader.Record, of reader: CSVReader, _ columns: Columns) throws(RowProblem) -> Spot {
    // With a field too few or too many, the values would land in the wrong columns.
    guard record.fields.count == columns.count else {
      let index = min(record.fields.count, columns.count)
      throw reader.problem(in: record, field: index, "\(record.fields.count) fields where the first row has \(columns.count)")
    }
    func value(_ field: SpotField) -> String { columns.indices[field].map { record.fields[$0] } ?? "" }
    func number(_ field: SpotField) throws(SpotProblem) -> Double {
      // `Double` also accepts hexadecimal digits, and the words "nan" and "inf".
      guard value(field).utf8.allSatisfy(Byte.isOfDecimal), let number = Double(value(field)), number.isFinite else {
        throw SpotProblem(field, "\(field.rawValue) is not a number")
      }
      return number
    }
    func count(_ field: SpotField) throws(SpotProblem) -> Int {
      let text = value(field)
      if text.isEmpty { return 0 }
      guard let number = Int(text) else { throw SpotProblem(field, "\(field.rawValue) is not a whole number") }
      return number
    }
    func country() throws(SpotProblem) -> String {
      let text = value(.country)
      // The column is optional, and a blank in it is not a misspelled country.
      if text.allSatisfy(\.isWhitespace) { return "" }
      guard let code = CountryNames.code(for: text) else {
        throw SpotProblem(.country, "country is not an ISO 3166 code such as FR, or an English name such as France")
      }
      return code
    }
    do throws(SpotProblem) {
      return try Spot(
        name: value(.name), latitude: try number(.latitude), longitude: try number(.longitude), timezone: value(.timezone),
        country: try country(), kind: value(.kind), source: value(.source), rating: try count(.rating), notes: value(.notes),
        tags: value(.tags).split(separator: " ").map(String.init), visits: try count(.visits))
    } catch {
      throw reader.problem(in: record, field: columns.indices[error.field] ?? 0, error.description)
    }
  }

  private struct Columns {
    private(set) var indices: [SpotField: Int] = [:]
    let count: Int
    /// The first column that repeats the name of an earlier column.
    private(set) var repeated: (field: SpotField, index: Int)?

    init(_ names: [String]) {
      count = names.count
      for (index, name) in names.enumerated() {
        // Files of other programs have columns of their own. They are counted, but not read.
        guard let field = SpotField(rawValue: name.lowercased()) else { continue }
        if indices[field] == nil { indices[field] = index } else if repeated == nil { repeated = (field, index) }
      }
    }
  }
}

extension Spot {
  /// Returns spots as the text of a CSV file that ``SpotsCSV`` reads back.
  public static func csv(_ spots: [Spot]) -> String {
    var text = SpotField.allCases.map(\.rawValue).joined(separator: ",") + "\n"
    // A fixed order, so that two exports of the same spots are byte-identical.
    for spot in spots.sorted(by: listedBefore) {
      let values = [
        spot.name, String(spot.latitude), String(spot.longitude), spot.timezone, spot.country, spot.kind, spot.source,
        spot.rating == 0 ? "" : String(spot.rating), spot.notes, spot.tags.joined(separator: " "),
        // The reader refuses a negative number.
        spot.visits <= 0 ? "" : String(spot.visits),
      ]
      text += values.map(quotedWhereNeeded).joined(separator: ",") + "\n"
    }
    return text
  }

  private static func quotedWhereNeeded(_ value: String) -> String {
    // Over UTF-8, because CRLF is one `Character` in Swift, which equals neither CR nor LF.
    let isPlain = value.utf8.allSatisfy { $0 != Byte.quote && $0 != Byte.comma && $0 != Byte.newline && $0 != Byte.carriageReturn }
    return isPlain ? value : "\"" + value.replacing("\"", with: "\"\"") + "\""
  }
}
