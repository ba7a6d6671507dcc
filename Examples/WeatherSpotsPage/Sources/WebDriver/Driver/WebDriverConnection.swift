import Foundation

/// The way to chromedriver: JSON over HTTP on loopback.
struct WebDriverConnection: Sendable {
  let port: UInt16
  /// The time that one request may take.
  let limit: Duration

  init(port: Int, limit: Duration = .seconds(60)) { (self.port, self.limit) = (UInt16(clamping: port), limit) }

  func get(_ path: String) async throws(WebDriverFailure) -> JSON { try await send("GET", path, nil) }

  func delete(_ path: String) async throws(WebDriverFailure) -> JSON { try await send("DELETE", path, nil) }

  func post(_ path: String, _ body: JSON = [:]) async throws(WebDriverFailure) -> JSON { try await send("POST", path, body) }

  /// Sends a request, and returns the value of the answer.
  ///
  /// It goes on when the task is cancelled, up to the limit of time: a command that has been sent is carried out.
  private func send(_ method: String, _ path: String, _ body: JSON?) async throws(WebDriverFailure) -> JSON {
    let request = LoopbackRequest(port: port, method: method, path: path, body: body.map { Data("\($0)".utf8) }, limit: limit)
    let response = try await request.answer()
    let answer: JSON
    do { answer = try JSON(response.body) } catch {
      let text = String(decoding: response.body.prefix(500), as: UTF8.self)
      throw WebDriverFailure(code: .connection, message: "\(method) \(path): \(response.status), not JSON: \(text)")
    }
    if response.status == 200 { return answer["value"] }
    let code = answer["value"]["error"].text.map { WebDriverFailure.Code($0) }
    // The rest of the message is a stack of chromedriver's own addresses.
    let message = (answer["value"]["message"].text ?? "\(answer)").components(separatedBy: "\nStacktrace:").first ?? ""
    throw WebDriverFailure(code: code ?? .connection, message: "\(method) \(path): \(message)")
  }
}
