internal import ArgumentParser
internal import LarderServer
internal import Logging

/// Options of `serve` for the authorization of requests.
struct AuthorizationOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The file of tokens, which 'token add' makes.", valueName: "file")) var tokens: String?
  @Option(help: ArgumentHelp("The keys of JSON Web Tokens (JWKS): a file, or an https URL.", valueName: "file-or-url")) var jwks: String?
  @Option(help: ArgumentHelp("The name that the claim aud of JSON Web Tokens must have.", valueName: "name")) var jwtAudience: String?
  @Option(help: ArgumentHelp("The name that the claim iss of JSON Web Tokens must be.", valueName: "name")) var jwtIssuer: String?
  @Flag(help: "Lets everybody do everything: for tries on one machine only.") var insecureNoAuth = false

  /// - Parameter host: The address to listen on.
  func check(host: String) throws {
    // With two of them, it would be open which one decides.
    guard [tokens != nil, jwks != nil, insecureNoAuth].count(where: { $0 }) == 1 else {
      throw ValidationError("Expected one of --tokens, --jwks and --insecure-no-auth.")
    }
    // On any other address, the whole network could read and write everything.
    guard !insecureNoAuth || Self.isLoopback(host) else {
      throw ValidationError(
        "--insecure-no-auth lets everybody do everything: expected 127.0.0.1, ::1 or localhost for --host, found '\(printable(host))'. "
          + "Use --tokens or --jwks to listen at other addresses.")
    }
    guard jwks != nil || jwtAudience == nil && jwtIssuer == nil else {
      throw ValidationError("Expected --jwks beside --jwt-audience and --jwt-issuer.")
    }
  }

  private static func isLoopback(_ host: String) -> Bool {
    if ["localhost", "::1"].contains(host.lowercased()) { return true }
    // Empty parts are kept, so that `127.0.0..1` does not pass for an address.
    let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
    // RFC 1122, 3.2.1.3: all of 127.0.0.0/8 is loopback.
    return parts.count == 4 && parts[0] == 127 && !parts.contains(nil)
  }

  /// Returns the authorizer that the options name.
  ///
  /// - Throws: ``ServerError``.
  func authorizer(_ logger: Logger) async throws -> any Authorizer {
    if let tokens { return try TokenFileAuthorizer(path: tokens, logger: logger) }
    if let jwks {
      if jwtAudience == nil { logger.warning("tokens for other services are taken, too: name this one with --jwt-audience") }
      return try await JWTAuthorizer(jwks: jwks, audience: jwtAudience, issuer: jwtIssuer, logger: logger)
    }
    logger.warning("everybody may do everything: --insecure-no-auth is for tries on one machine")
    return NoAuthorizer()
  }
}
