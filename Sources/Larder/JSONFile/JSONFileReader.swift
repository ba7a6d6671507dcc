internal import Foundation

/// A reader of a JSON store's files as they are: it locks, syncs, cuts and removes nothing.
///
/// A writer may be at work. What it appends to the journal meanwhile is a torn tail here, and is left out; a checkpoint puts another
/// main file in place, which is noticed by the generation, and then all is read again.
struct JSONFileReader {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let options: StoreOptions

  /// The number of attempts to read files that change meanwhile.
  private static let attempts = 5

  /// Returns all records and tombstones as of one commit.
  func run() throws(RepositoryError) -> ([StoredRecord], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      guard let mainFile = try fileSystem.contents(of: paths.mainFile) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: paths.mainFile)
      }
      let journal = try fileSystem.contents(of: paths.journal)
      do throws(RepositoryError) {
        var records: [StoredRecord] = []
        let contents = try JSONFileContents(.data(mainFile), journal, paths, options.recovery) { records.append($0) }
        if try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize) == mainFile.prefix(Self.headerSize) {
          return (records, contents.report)
        }
      } catch {
        // Damage that is there in both readings is damage, and not a writer's work.
        if try fileSystem.contents(of: paths.mainFile) == mainFile, try fileSystem.contents(of: paths.journal) == journal { throw error }
        failure = error
      }
    }
    throw failure ?? RepositoryError(.inputOutput, "the files change faster than they can be read", file: paths.mainFile)
  }

  func verify() -> VerifyReport {
    do throws(RepositoryError) {
      let (records, report) = try run()
      let recordCount = records.count { $0.value != nil }
      return VerifyReport(commit: report.commit, recordCount: recordCount, tombstoneCount: records.count - recordCount)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  /// Enough to hold the header, and with it the generation.
  private static let headerSize = 512
}
