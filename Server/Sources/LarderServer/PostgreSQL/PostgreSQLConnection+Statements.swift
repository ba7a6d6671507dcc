internal import CPostgreSQL
internal import Foundation

extension PostgreSQLConnection {
  /// Type numbers of int8, int2 and int4 in `pg_type`.
  private static let integers: Set<Oid> = [20, 21, 23]

  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) {
    let types = parameters.map(Self.type)
    // Behind a pooler, the session that runs the next statement may lack a prepared one.
    let name = options.usesPooler ? nil : try prepare(sql, types)
    let sent = try Self.withPointers(to: parameters) { pointers in
      if let name {
        PQsendQueryPrepared(connection, name, Int32(parameters.count), pointers, nil, nil, 0)
      } else {
        PQsendQueryParams(connection, text(of: sql), Int32(parameters.count), types, pointers, nil, nil, 0)
      }
    }
    try note(sent)
    // Otherwise libpq would hold all rows of the result in memory.
    PQsetSingleRowMode(connection)
    try receive(row: row)
  }

  /// Executes statements without parameters in one round trip, and returns the command tag of the last one.
  @discardableResult func simple(_ sql: String) throws(StoreError) -> String {
    try note(PQsendQuery(connection, sql))
    return try receive { (_) throws(StoreError) in true }
  }

  private func note(_ sent: Int32) throws(StoreError) {
    if sent != 0 { return }
    isBroken = true
    throw PostgreSQLFailure.lost(connection)
  }

  /// Reads all results of a statement, and returns the command tag of the last one.
  ///
  /// Rows after the closure has returned false are dropped, which is why statements for pages have a LIMIT.
  @discardableResult private func receive(row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) -> String {
    var (failure, wantsRows, tag, results): (StoreError?, Bool, String, Int) = (nil, true, "", 0)
    // Read to the end even after a failure: libpq accepts no other statement before.
    while true {
      try wait(hadResult: results > 0)
      guard let result = PQgetResult(connection) else { break }
      defer { PQclear(result) }
      results += 1
      switch PQresultStatus(result) {
      case PGRES_SINGLE_TUPLE, PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
        tag = PQcmdStatus(result).map { String(cString: $0) } ?? ""
        for index in 0..<PQntuples(result) where wantsRows && failure == nil {
          do throws(StoreError) { wantsRows = try row(Self.read(result, index)) } catch { failure = error }
        }
      default:
        let found = PostgreSQLFailure.of(result, connection, isFirst: results == 1)
        if found.endsConnection { isBroken = true }
        // A session that ends sends two results, the first of which says why.
        failure = failure ?? found
      }
    }
    if let failure { throw failure }
    return tag
  }

  /// Blocks until a result can be read, but at most 5 seconds longer than a statement may take.
  ///
  /// A server process that is stopped confirms bytes and answers nothing, which no timeout of TCP notices.
  private func wait(hadResult: Bool) throws(StoreError) {
    let end = ContinuousClock.now + .seconds(options.statementSeconds + 5)
    while PQisBusy(connection) != 0 {
      let left = (end - .now) / .milliseconds(1)
      var descriptor = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
      let found = left > 0 ? poll(&descriptor, 1, Int32(left.rounded(.up))) : 0
      // A signal to the process says nothing about the connection.
      if found < 0, errno == EINTR { continue }
      guard found > 0 else {
        isBroken = true
        throw .database(code: "08006", message: "the database does not answer")
      }
      if PQconsumeInput(connection) == 0 {
        isBroken = true
        throw PostgreSQLFailure.lost(connection, hadResult: hadResult)
      }
    }
  }

  // MARK: Values

  /// Returns the type of a parameter, so that the engine need not guess it.
  ///
  /// The type of NULL follows from its place.
  private static func type(_ value: SQLValue) -> Oid {
    switch value {
    case .null: 0
    case .integer: 20
    case .text, .utf8: 25
    }
  }

  /// Returns the name of the prepared statement with a text, after preparing it if necessary.
  private func prepare(_ sql: String, _ types: [Oid]) throws(StoreError) -> String {
    if let name = prepared[sql] { return name }
    // Bounds the memory of prepared statements, of which IN lists of many lengths make many. A dropped one is prepared when used again.
    if prepared.count >= 100 {
      try simple("DEALLOCATE ALL")
      prepared = [:]
    }
    let name = "larder\(prepared.count)"
    try note(PQsendPrepare(connection, name, text(of: sql), Int32(types.count), types))
    try receive { (_) throws(StoreError) in true }
    // Only after the answer, since a statement that cannot be prepared has no name.
    prepared[sql] = name
    return name
  }

  /// Returns a statement with `$1`, `$2`… in the places of `?`.
  ///
  /// No literal within a statement contains a question mark.
  private func text(of sql: String) -> String {
    if let text = numbered[sql] { return text }
    var (text, number) = ("", 0)
    for character in sql {
      if character == "?" {
        number += 1
        text += "$\(number)"
      } else {
        text.append(character)
      }
    }
    // IN lists of many lengths make many texts, so the number of remembered ones is bounded.
    if numbered.count >= 200 { numbered = [:] }
    numbered[sql] = text
    return text
  }

  /// Calls `body` with the parameters as texts that end with a zero byte.
  private static func withPointers(
    to parameters: [SQLValue], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Int32
  ) throws(StoreError) -> Int32 {
    var (bytes, starts): ([UInt8], [Int?]) = ([], [])
    for value in parameters {
      let start = bytes.count
      switch value {
      case .null:
        starts.append(nil)
        continue
      case .integer(let number): bytes.append(contentsOf: String(number).utf8)
      case .text(let text): bytes.append(contentsOf: text.utf8)
      case .utf8(let data): bytes.append(contentsOf: data)
      }
      // A zero byte would cut the text. Names are checked earlier, and JSON escapes the character.
      guard !bytes[start...].contains(0) else { throw .database(code: "22021", message: "a text has U+0000") }
      starts.append(start)
      bytes.append(0)
    }
    // Pointers are made after the last append, which may move the bytes.
    return bytes.withUnsafeBytes { bytes in
      let pointers = starts.map { start in start.flatMap { bytes.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self) } }
      return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }
  }

  private static func read(_ result: OpaquePointer, _ row: Int32) -> SQLRow {
    SQLRow(
      (0..<PQnfields(result)).map { column in
        guard PQgetisnull(result, row, column) == 0, let bytes = PQgetvalue(result, row, column) else { return .null }
        if integers.contains(PQftype(result, column)), let number = Int(String(cString: bytes)) { return .integer(number) }
        return .utf8(Data(bytes: bytes, count: Int(PQgetlength(result, row, column))))
      })
  }
}
