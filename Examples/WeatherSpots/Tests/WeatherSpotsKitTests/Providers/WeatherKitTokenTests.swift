import Foundation
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite(.needsSigning, .timeLimit(.minutes(15))) struct WeatherKitTokenTests {
  /// The published key of RFC 7515, appendix A.3, and a token of WeatherKit's shape that was signed with it.
  struct Vector: Decodable {
    struct Example: Decodable {
      let header: String
      let claims: String
      let signing_input: String
      let token: String
    }
    let pkcs8_pem: String
    let rfc7515_a3_jws: String
    let weatherkit_example: Example

    static func read() throws -> Vector {
      try JSONDecoder().decode(Vector.self, from: Data(contentsOf: Fixture.file("es256-jwt-test-vector.json")))
    }

    func key() throws -> WeatherKitKey {
      try WeatherKitKey(pem: pkcs8_pem, keyID: "ABC123DEFG", teamID: "TEAM123456", serviceID: "com.example.spots")
    }
  }

  private let vector: Vector
  private let key: WeatherKitKey
  private let now = Date(timeIntervalSince1970: 1_767_225_660)

  init() throws {
    vector = try Vector.read()
    key = try vector.key()
  }

  @Test func theHeaderAndTheClaimsAreExactToTheByte() throws {
    let example = vector.weatherkit_example
    #expect(WeatherKitToken.signingInput(header: example.header, claims: example.claims) == example.signing_input)
    let parts = try WeatherKitToken(key, at: now).text.split(separator: ".").map(String.init)
    #expect(String(decoding: try #require(Data(base64URL: parts[0])), as: UTF8.self) == example.header)
    // Issued a minute before now, ended half an hour after it.
    let claims = example.claims.replacing("1767229200", with: "1767227460")
    #expect(String(decoding: try #require(Data(base64URL: parts[1])), as: UTF8.self) == claims)
  }

  @Test func aTokenVerifiesAndOneFlippedBitDoesNot() throws {
    for token in [try WeatherKitToken(key, at: now).text, vector.weatherkit_example.token, vector.rfc7515_a3_jws] {
      #expect(try Signing.verifies(token, vector.pkcs8_pem))
      let parts = token.split(separator: ".").map(String.init)
      var signature = try #require(Data(base64URL: parts[2]))
      #expect(signature.count == 64)
      signature[20] ^= 1
      #expect(try !Signing.verifies("\(parts[0]).\(parts[1]).\(signature.base64URL)", vector.pkcs8_pem))
      #expect(try !Signing.verifies("\(parts[0]).\(parts[1])A.\(parts[2])", vector.pkcs8_pem))
    }
  }

  @Test func aTokenIsSignedOnceForAllAndAgainBeforeItEnds() async throws {
    let clock = ManualClock(now: now)
    let tokens = WeatherKitTokens(key, now: { clock.now })
    let signed = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<200 { group.addTask { try await tokens.current().text } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(signed.count == 1)
    clock.advance(by: .seconds(WeatherKitToken.lifetime - 61))
    #expect(try await signed.contains(tokens.current().text))
    clock.advance(by: .seconds(2))
    #expect(try await !signed.contains(tokens.current().text))
    #expect(await tokens.signedCount == 2)
  }

  @Test func aTokenOfTheFutureIsNotUsedAfterTheClockWasSetBack() async throws {
    let clock = ManualClock(now: now)
    let tokens = WeatherKitTokens(key, now: { clock.now })
    let first = try await tokens.current()
    clock.setWall(by: -86400)
    #expect(try await tokens.current() != first)
  }

  @Test func aRefusedTokenIsReplacedOnceForAllWhoHadIt() async throws {
    let now = now
    let tokens = WeatherKitTokens(key, now: { now })
    let refused = try await tokens.current()
    let trial = try await tokens.renewal(after: refused)
    #expect(trial.isTrial)
    let others = (0..<50).map { _ in Task { try await tokens.renewal(after: refused) } }
    await tokens.endTrial(refusal: nil)
    for other in others {
      let renewal = try await other.value
      #expect(renewal.token == trial.token && renewal.token != refused && !renewal.isTrial)
    }
    #expect(await tokens.signedCount == 2)
  }

  @Test func aKeyFileThatOthersCanReadIsRefused() throws {
    let folder = Workspace()
    let file = folder.directory.appending(path: "AuthKey.p8")
    try Data(vector.pkcs8_pem.utf8).write(to: file)  // a test's input
    func read() throws { _ = try WeatherKitKey(file: file, keyID: "A", teamID: "B", serviceID: "c.d") }
    for mode in [0o644, 0o640, 0o604] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
      #expect(throws: ProviderError.misconfigured("the WeatherKit key file can be read by others; type `chmod 600 \(file.path)`")) {
        try read()
      }
    }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    try read()
  }

  @Test func nothingOfTheKeyIsEverPrinted() throws {
    var dumped = ""
    dump(key, to: &dumped)
    let token = try WeatherKitToken(key, at: now)
    let body = vector.pkcs8_pem.split(separator: "\n").dropFirst().dropLast().joined()
    var failures: [String] = []
    do { _ = try WeatherKitKey(pem: vector.pkcs8_pem.replacing("MIGH", with: "AIGH"), keyID: "A", teamID: "B", serviceID: "c") } catch {
      failures = ["\(error)", String(reflecting: error)]
    }
    #expect(!failures.isEmpty)
    for text in ["\(key)", String(reflecting: key), dumped, "\(token)"] + failures {
      #expect(!text.contains(body.prefix(12)) && !text.contains("jpsQnnGQ") && !text.contains(token.text.suffix(20)))
    }
  }

  @Test func anIdThatCouldChangeTheHeaderIsRefused() {
    for id in ["", "a\"b", "a\r\nX: y", "ü"] {
      #expect(throws: ProviderError.self) {
        try WeatherKitKey(pem: vector.pkcs8_pem, keyID: id, teamID: "TEAM123456", serviceID: "com.example.spots")
      }
    }
  }
}
