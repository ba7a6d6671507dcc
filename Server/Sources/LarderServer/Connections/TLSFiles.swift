internal import Dispatch
internal import Foundation
public import Logging
internal import NIOSSL
internal import Synchronization

/// Certificate and private key of a server, in files that are read again when they change.
public final class TLSFiles: Sendable {
  private struct State: Sendable {
    var context: NIOSSLContext
    var versions: [FileVersion]
  }

  private let certificate: String
  private let key: String
  private let logger: Logger
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "larder-tls")

  /// Reads the certificate and its private key.
  ///
  /// - Parameters:
  ///   - certificate: The certificate in PEM, followed by those of its chain.
  ///   - key: Its private key in PEM.
  /// - Throws: ``ServerError`` for files that are missing, malformed, or do not belong together.
  public init(certificate: String, key: String, logger: Logger) throws(ServerError) {
    (self.certificate, self.key, self.logger) = (certificate, key, logger)
    // Taken before the read, so that files that change in between are read again.
    let versions = [certificate, key].map(FileVersion.init)
    state = Mutex(State(context: try Self.read(certificate, key), versions: versions))
  }

  /// TLS context with the newest certificate that could be read, for connections that begin now.
  var context: NIOSSLContext { state.withLock { $0.context } }

  private static func read(_ certificate: String, _ key: String) throws(ServerError) -> NIOSSLContext {
    do {
      let chain = try NIOSSLCertificate.fromPEMFile(certificate).map { NIOSSLCertificateSource.certificate($0) }
      let key = NIOSSLPrivateKeySource.privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
      var configuration = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: key)
      // RFC 8996 deprecates TLS 1.0 and 1.1.
      configuration.minimumTLSVersion = .tlsv12
      // ALPN must not offer HTTP/2, which this server does not speak.
      configuration.applicationProtocols = ["http/1.1"]
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw ServerError(
        expected: "a certificate and its private key in PEM at \(certificate) and \(key)", found: "\(error)",
        advice: "name other files with --tls-certificate and --tls-key")
    }
  }

  /// Reads the files again if they have changed.
  ///
  /// Call it after you have replaced the files, if you do not want to wait for the server's next look. Files that do not belong together
  /// (yet) change nothing, and are logged.
  public func renew() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      // Reading files blocks, which no thread of Swift's tasks may do.
      queue.async { [self] in
        renewNow()
        continuation.resume()
      }
    }
  }

  private func renewNow() {
    let versions = [certificate, key].map(FileVersion.init)
    guard versions != state.withLock({ $0.versions }) else { return }
    do throws(ServerError) {
      let context = try Self.read(certificate, key)
      state.withLock { ($0.context, $0.versions) = (context, versions) }
      logger.info("the certificate was read again")
    } catch {
      // Logged once for each change, because the second file of the pair may still be on its way.
      state.withLock { $0.versions = versions }
      logger.error("the certificate was not taken", metadata: ["error": "\(error)"])
    }
  }
}
