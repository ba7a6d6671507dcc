import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// A `sync --watch` that runs, and what it writes.
struct SpotsWatching {
  let process: ChildProcess
  let pipe: LinePipe

  init(_ device: SpotsDevice) throws {
    pipe = try LinePipe()
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    process = try device.start(["sync", "--watch", "--json"], output: pipe.input, errors: null)
    close(pipe.input)
    close(null)
  }

  /// Ends it as Ctrl-C does.
  func end() async {
    process.send(SIGINT)
    let code = await process.end()
    #expect(code == 0)
  }
}
