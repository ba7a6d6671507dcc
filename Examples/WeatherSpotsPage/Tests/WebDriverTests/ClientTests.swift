import Foundation
import Testing

@testable import WebDriver

struct ClientTests {
  @Test func everyValueOfJSONComesBack() throws {
    let value: JSON = ["a": [nil, true, false, 0, 1, -2.5, "ü\n", [:], []], "b": ["c": 5]]
    #expect(try JSON(value.data()) == value)
    #expect("\(value)" == #"{"a":[null,true,false,0,1,-2.5,"ü\n",{},[]],"b":{"c":5}}"#)
    #expect(value["b"]["c"].integer == 5)
    #expect(value["x"]["y"] == .null)
    #expect(throws: DecodingError.self) { try JSON(Data("{".utf8)) }
  }

  @Test func aMissingProgramIsNamed() throws {
    func reason(_ environment: [String: String]) -> String? {
      if case .failure(let missing) = BrowserAvailability.find(environment, besides: []) { missing.reason } else { nil }
    }
    #expect(reason(["PATH": "/dev/null"]) == "tests in a browser: chromedriver is not installed (apt-get install chromium-driver)")
    let driver = ["WEBDRIVER_CHROMEDRIVER": "/bin/sh", "WEBDRIVER_CHROMIUM": "/dev/null/chromium"]
    #expect(reason(driver) == "tests in a browser: chromium is not installed (apt-get install chromium)")
    #expect(reason(driver.merging(["WEBDRIVER_CHROMIUM": "/bin/sh"]) { $1 }) == nil)
  }

  @Test func aServerThatDoesNotAnswerIsGivenUp() async throws {
    try await PageServer.running([:], hanging: "/status") { server in
      let connection = WebDriverConnection(port: server.port, limit: .seconds(1))
      let failure = await #expect(throws: WebDriverFailure.self) { try await connection.get("status") }
      #expect(failure?.code == .timeout)
    }
  }

  @Test func anAnswerOfAnotherServerIsReported() async throws {
    try await PageServer.running(["/status": "<p>hello"]) { server in
      let connection = WebDriverConnection(port: server.port)
      let failure = await #expect(throws: WebDriverFailure.self) { try await connection.get("status") }
      #expect(failure?.description == "connection: GET status: 200, not JSON: <p>hello")
    }
  }

  @Test func nobodyOnThePortIsReported() async throws {
    let connection = WebDriverConnection(port: 1)
    let failure = await #expect(throws: WebDriverFailure.self) { try await connection.get("status") }
    #expect(failure?.code == .connection)
  }
}
