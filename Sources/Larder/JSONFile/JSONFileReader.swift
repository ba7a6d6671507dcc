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
  func run(_ limits: StoreOptions.Limits?) throws(RepositoryError) -> ([LoadedRecords], OpenReport) {
    var failure: RepositoryError?
    for _ in 0..<Self.attempts {
      guard let mainFile = try fileSystem.contents(of: paths.mainFile) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: paths.mainFile)
      }
      let journal = try fileSystem.contents(of: paths.journal)
      do throws(RepositoryError) {
        var records: [LoadedRecords] = []
        let contents = try JSONFileContents(.data(mainFile), journal, paths, options.recovery, limits) { records.append($0) }
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
      let (records, report) = try run(nil)
      var counts = (records: 0, tombstones: 0)
      for loaded in records {
        switch loaded {
        case .pack(let pack): counts.records += pack.count
        case .record(let record): if record.value == nil { counts.tombstones += 1 } else { counts.records += 1 }
        }
      }
      return VerifyReport(commit: report.commit, recordCount: counts.records, tombstoneCount: counts.tombstones)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  /// Enough to hold the header, and with it the generation.
  private static let headerSize = 512
}
