internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// Command `reseal`, which accepts the changes that a person has made in a JSON file.
struct ResealCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "reseal",
    abstract: "Make the checksums of a JSON file anew that was edited by hand.",
    discussion: """
      Shows which records do not match their checksums: changed, added and removed ones. With --original, an earlier copy of the store, it \
      also names the members that differ and the records that were removed. With --accept it writes the file anew, with checksums and new \
      revisions for those records; the edited file is kept beside it, as `STORE-edited-DATE`.

      A new record needs only `in`, `id` and `value`. While an app has the store open, or a journal is beside it, nothing is done.

      Exit codes: 0 nothing differs or it was taken over, 1 something differs, 2 refused: nothing was changed, 3 taken over, \
      but the answer cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The JSON file.", valueName: "store"), completion: .file())
  var store: String

  // Not the default, because differences can be damage, and new checksums would hide it.
  @Flag(name: .long, help: "Take the differences over.")
  var accept = false

  @Option(name: .long, help: ArgumentHelp("A copy of the store from before the edit.", valueName: "copy"), completion: .file())
  var original: String?

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    var options = Resealing.Options()
    options.isAccepted = accept
    if let original { options.original = try StoreFile(path: original) }
    let answer = try Resealing(of: StoreFile(path: store), options, now: Date())
    // `--accept` without a difference writes nothing.
    try console.write(answer, hasChanged: answer.isWritten)
    return answer.status
  }
}
