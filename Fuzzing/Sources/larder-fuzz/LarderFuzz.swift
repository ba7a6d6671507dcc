import CLibFuzzer
import Foundation
import FuzzTargets

/// The program: it runs the target that the environment names, since libFuzzer starts it anew with arguments of its own.
@main
enum LarderFuzz {
  /// The target that the environment names.
  static let target = FuzzTarget.named(ProcessInfo.processInfo.environment["LARDER_FUZZ_TARGET"] ?? "")

  /// Runs libFuzzer where it is linked; otherwise tries each file of the arguments once, and lists the targets where none is named.
  static func main() {
    #if LARDER_FUZZING
      var (count, arguments) = (CommandLine.argc, CommandLine.unsafeArgv)
      withUnsafeMutablePointer(to: &arguments) { arguments in
        arguments.withMemoryRebound(to: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self, capacity: 1) { arguments in
          exit(LLVMFuzzerRunDriver(&count, arguments) { LarderFuzz.tryInput($0, $1) })
        }
      }
    #else
      guard CommandLine.arguments.count > 1 else {
        return print(FuzzTarget.all.map { "\($0.name) \($0.maximumLength)" }.joined(separator: "\n"))
      }
      for path in CommandLine.arguments.dropFirst() {
        guard let contents = FileManager.default.contents(atPath: path) else {
          print("larder-fuzz: expected a file that can be read, found none at \(path)")
          exit(1)
        }
        contents.withUnsafeBytes { tryInput($0) }
      }
    #endif
  }

  /// Tries the input that libFuzzer has made.
  static func tryInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    tryInput(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
  }

  /// Tries one input, and ends the process where a promise is broken: libFuzzer then keeps the input.
  static func tryInput(_ bytes: UnsafeRawBufferPointer) {
    guard let target else {
      print("larder-fuzz: expected the name of a target in LARDER_FUZZ_TARGET")
      exit(2)
    }
    do {
      try target.run(bytes)
    } catch {
      print("larder-fuzz: a promise is broken: \(error)")
      fflush(nil)
      abort()
    }
  }
}
