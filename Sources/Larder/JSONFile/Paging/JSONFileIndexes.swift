internal import Foundation

/// The indexes of a JSON store whose keys are in its index file.
///
/// Each index is a run, which never changes, and the edits since the run was written. The edits are in memory. From time to time, the new
/// ones are appended to the index file.
struct JSONFileIndexes: Sendable {
  private var entries: [StoredIndexID: Entry] = [:]
  /// Edits that are not in the index file yet.
  private var unsaved: [IndexEdit] = []
  /// Edits since a background checkpoint has begun, which its index file will lack, or `nil` if none is running.
  private var sinceFold: [IndexEdit]?
  /// The part with the list of the complete indexes, or `nil` if the index file has another list.
  private var catalog: IndexFilePart? = IndexFilePart.none
  /// The newest part with edits in the index file.
  private var savedEdits = IndexFilePart.none
  private var nextNumber: UInt32 = 1
  /// Bound of the numbers in a file, so that adding to them cannot overflow.
  private static let numberLimit: UInt32 = 1 << 31
  /// The changes that the behind indexes lack, each with the record before.
  private var missed: [RecordAddress: UncountedChanges.Before] = [:]

  private struct Entry: Sendable {
    /// Number of the index in the edits of the index file, which no other index of the file has had.
    let number: UInt32
    var edits = RunEdits()
    var state: State
    /// True if the store has changes that the index lacks, until ``catchUp(_:by:)``.
    var isBehind = false
    /// True if the index was completed or brought up to date during a background checkpoint, whose index file lacks it.
    var isNewerThanFold = false

    enum State: Sendable {
      /// Keys are still being added. The parts of the index begin at `start` in the index file, or behind it.
      case building(KeyRunWriter, start: Int)
      case complete(KeyRun)
    }

    var keys: RunKeys? {
      if case .complete(let run) = state, !isBehind { RunKeys(run: run, edits: edits) } else { nil }
    }
  }

  init() {}

  /// The keys of the complete indexes as of the newest commit.
  var keys: [StoredIndexID: RunKeys] { entries.compactMapValues(\.keys) }

  /// Whether an index is complete and has the changes of all commits.
  func holds(_ index: StoredIndexID) -> Bool { entries[index]?.keys != nil }

  /// Whether the index file lacks edits, or an index.
  var areUnsaved: Bool { !unsaved.isEmpty || catalog == nil }

  // MARK: Commits

  /// Changes the keys by a batch, and drops each index of a changed collection that the batch does not name.
  ///
  /// - Parameter isSaving: True if the edits are to be written to the index file.
  mutating func apply(_ batch: WriteBatch, isSaving: Bool) {
    if entries.isEmpty { return }
    let changed = Set(batch.records.map(\.collection))
    for (index, entry) in entries where changed.contains(index.collection) && (entry.isBehind || !batch.indexes.contains(index)) {
      drop(index)
    }
    for edit in batch.indexEdits where !apply(edit, isSaving: isSaving) { drop(edit.index) }
  }

  private mutating func apply(_ edit: IndexEdit, isSaving: Bool) -> Bool {
    guard entries[edit.index]?.edits.apply(edit) == true else { return false }
    if isSaving { unsaved.append(edit) }
    sinceFold?.append(edit)
    return true
  }

  /// Removes an index, whether it is complete or not.
  private mutating func drop(_ index: StoredIndexID) {
    guard let entry = entries.removeValue(forKey: index) else { return }
    // A later index of the same name must not get the edits.
    unsaved.removeAll { $0.index == index }
    sinceFold?.removeAll { $0.index == index }
    if case .complete = entry.state { catalog = nil }
    forgetMissed()
  }

  // MARK: Building

  /// Adds keys to an index that is being built, and gives back the space of an index that cannot be continued.
  ///
  /// - Parameter room: Size of the parts of the index file beyond which no index is begun.
  mutating func extend(
    _ index: StoredIndexID, by keys: [Data], isFirst: Bool, in file: inout IndexFile, room: Int
  ) throws(RepositoryError) {
    if isFirst {
      drop(index)
      // Only a checkpoint frees the space of a dropped index, so an index that is built again and again would fill the disk.
      guard file.end - file.start <= room else {
        throw RepositoryError(
          .unsupported, "expected at most \(room) bytes of keys in the index file, found more; run checkpoint()", file: file.reader.path)
      }
      entries[index] = Entry(number: nextNumber, state: .building(KeyRunWriter(), start: file.end))
      nextNumber += 1
    }
    try changeBuild(of: index, in: &file) { (writer, file) throws(RepositoryError) in
      for key in keys { try key.lending { key throws(RepositoryError) in try writer.add(key, to: &file) } }
      return nil
    }
  }

  /// Completes an index, or leaves an index that is complete as it is.
  mutating func complete(_ index: StoredIndexID, in file: inout IndexFile) throws(RepositoryError) {
    if case .complete = entries[index]?.state { return }
    try changeBuild(of: index, in: &file) { (writer, file) throws(RepositoryError) in try writer.finish(in: &file) }
    entries[index]?.isNewerThanFold = sinceFold != nil
    catalog = nil
  }

  private mutating func changeBuild(
    of index: StoredIndexID, in file: inout IndexFile,
    _ body: (inout KeyRunWriter, inout IndexFile) throws(RepositoryError) -> KeyRun?
  ) throws(RepositoryError) {
    guard case .building(var writer, let start) = entries[index]?.state else { throw .storesNoIndexes(file.reader.path) }
    do throws(RepositoryError) {
      // The entry holds no second reference to the writer's arrays, so that they are not copied.
      entries[index]?.state = .building(KeyRunWriter(), start: start)
      let run = try body(&writer, &file)
      entries[index]?.state = run.map { .complete($0) } ?? .building(writer, start: start)
    } catch {
      drop(index)
      cutFailedBuild(from: start, in: &file)
      throw error
    }
  }

  /// Removes an index that is being built, and cuts its parts of the index file, so that commits can use their space.
  mutating func dropBuild(of index: StoredIndexID, in file: inout IndexFile) {
    guard case .building(_, let start) = entries[index]?.state else { return drop(index) }
    drop(index)
    cutFailedBuild(from: start, in: &file)
  }

  private mutating func cutFailedBuild(from start: Int, in file: inout IndexFile) {
    if savedEnd > start {
      // Until the next save, the slots name parts that are gone, and an opening would find their counts but no index.
      for case .complete(let run) in entries.values.map(\.state) where run.part.offset >= start { return }
      (catalog, savedEdits, unsaved) = (nil, .none, [])
      for (index, entry) in entries { saveAgain(index, entry) }
    }
    file.cut(to: start)
  }

  /// Offset behind the last part that a slot names.
  private var savedEnd: Int {
    var end = savedEdits.offset + savedEdits.size
    if let catalog { end = max(end, catalog.offset + catalog.size) }
    for case .complete(let run) in entries.values.map(\.state) { end = max(end, run.part.offset + run.part.size) }
    return end
  }

  /// Cuts the parts of an index file that an earlier process has left behind the last one that a slot names.
  func trim(_ file: inout IndexFile) {
    let end = max(file.start, savedEnd)
    if end < file.end { file.cut(to: end) }
  }

  // MARK: Catching up

  /// Whether the store has changes that an index lacks.
  var areBehind: Bool { entries.values.contains { $0.isBehind } }

  /// Returns the addresses whose changes an index lacks, in order, each with the record before.
  func missedChanges(of index: StoredIndexID) -> [(address: RecordAddress, before: UncountedChanges.Before)] {
    guard entries[index]?.isBehind == true else { return [] }
    return missed.filter { $0.key.collection == index.collection }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Adds the edits of the missed changes to an index.
  mutating func catchUp(_ index: StoredIndexID, by edits: [IndexEdit], isSaving: Bool) {
    guard entries[index]?.isBehind == true else { return }
    entries[index]?.isBehind = false
    entries[index]?.isNewerThanFold = sinceFold != nil
    for edit in edits where edit.index != index || !apply(edit, isSaving: isSaving) { return drop(index) }
    forgetMissed()
  }

  /// Drops all indexes, and cuts their parts of the index file.
  mutating func dropAll(in file: inout IndexFile) {
    for index in entries.keys { drop(index) }
    (catalog, savedEdits) = (IndexFilePart.none, .none)
    file.cut(to: file.start)
  }

  /// Drops the indexes that lack changes, before the index file says that it has all changes.
  mutating func dropBehind() {
    for (index, entry) in entries where entry.isBehind { drop(index) }
  }

  private mutating func forgetMissed() {
    if !areBehind { missed = [:] }
  }

  // MARK: Checkpoints

  /// The complete indexes, for the index file of the next main file.
  var drafts: [IndexDraft] {
    entries.compactMap { index, entry in entry.keys.map { IndexDraft(index: index, number: entry.number, keys: $0) } }
  }

  /// Begins to note the edits that the index file of a checkpoint will lack.
  mutating func beginFold() { sinceFold = [] }
  mutating func cancelFold() { sinceFold = nil }

  /// Returns the indexes over the runs of a new index file, which has the keys as of the beginning of the checkpoint.
  func moved(to new: JSONFileIndexes, in file: inout IndexFile) -> JSONFileIndexes {
    var next = new
    for (index, entry) in new.entries where entries[index]?.number != entry.number || !holds(index) { next.drop(index) }
    for edit in sinceFold ?? [] where next.entries[edit.index] != nil {
      if !next.apply(edit, isSaving: true) { next.drop(edit.index) }
    }
    next.nextNumber = max(nextNumber, new.nextNumber)
    for (index, entry) in entries where entry.isNewerThanFold && next.entries[index] == nil {
      guard case .complete(let run) = entry.state else { continue }
      let start = file.end
      do throws(RepositoryError) {
        var copy = entry
        (copy.state, copy.isNewerThanFold) = (.complete(try run.copy(to: &file)), false)
        next.entries[index] = copy
        next.catalog = nil
        next.saveAgain(index, copy)
      } catch {
        // The next query builds the index.
        file.cut(to: start)
      }
    }
    return next
  }

  /// Notes all edits of an index as ones that the index file does not have.
  private mutating func saveAgain(_ index: StoredIndexID, _ entry: Entry) {
    var edits: [IndexEdit] = []
    entry.edits.forEach { edits.append(IndexEdit(index: index, removed: $0, added: $1)) }
    unsaved += edits
  }

  /// Writes the keys of an index to a new index file, unless they are damaged.
  mutating func write(_ draft: IndexDraft, to file: inout IndexFile) throws(RepositoryError) {
    let start = file.end
    var writer = KeyRunWriter()
    do throws(RepositoryError) {
      try draft.keys.write(to: &writer, in: &file)
      entries[draft.index] = Entry(number: draft.number, state: .complete(try writer.finish(in: &file)))
      (nextNumber, catalog) = (max(nextNumber, draft.number + 1), nil)
    } catch {
      // Without keys that cannot be read, the next query builds the index. An error of writing ends the whole file.
      guard [.corrupted, .superseded, .unsupported].contains(error.code) else { throw error }
      file.cut(to: start)
    }
  }

  // MARK: Index file

  /// Appends the new edits and the list of the indexes to the index file, and returns the parts that a slot must name.
  mutating func save(to file: inout IndexFile) throws(RepositoryError) -> (catalog: IndexFilePart, edits: IndexFilePart) {
    // Without an index, no part is named, so that the next opening frees the space of all parts.
    if entries.isEmpty { savedEdits = .none }
    if !unsaved.isEmpty {
      var bytes: [UInt8] = []
      bytes.append(part: savedEdits)
      bytes.append(number: UInt32(truncatingIfNeeded: unsaved.count))
      for edit in unsaved {
        // The edits of an index that is dropped are dropped with it, so each edit has a number.
        bytes.append(number: entries[edit.index]?.number ?? 0)
        bytes.append(number: UInt32((edit.removed == nil ? 0 : 1) + (edit.added == nil ? 0 : 2)))
        for key in [edit.removed, edit.added] { if let key { bytes.append(data: key) } }
      }
      savedEdits = try file.append(bytes)
      unsaved = []
    }
    if catalog == nil {
      let complete = entries.compactMap { index, entry in
        if case .complete(let run) = entry.state { (index: index, number: entry.number, run: run) } else { nil }
      }
      var bytes: [UInt8] = []
      bytes.append(number: UInt32(truncatingIfNeeded: complete.count))
      for (index, number, run) in complete {
        bytes.append(number: number)
        bytes.append(text: RecordKey(index.collection))
        bytes.append(text: RecordKey(index.name))
        bytes.append(part: run.part)
        bytes.append(number: UInt64(run.count))
      }
      catalog = complete.isEmpty ? IndexFilePart.none : try file.append(bytes)
    }
    return (catalog ?? IndexFilePart.none, savedEdits)
  }

  /// Reads the indexes that a slot names, without their keys.
  ///
  /// If a part cannot be read, there are no indexes.
  /// - Parameter missed: The changes since the commit of the slot, each with the record before.
  init(_ slot: IndexFileSlots.Slot?, in reader: SnapshotFile?, missed: [RecordAddress: UncountedChanges.Before] = [:]) {
    self.init()
    guard let slot, let reader else { return }
    var isReadable = false
    do throws(RepositoryError) {
      if slot.catalog != .none, try readCatalog(slot.catalog, in: reader) { isReadable = try readEdits(slot.edits, in: reader) }
    } catch {}
    guard isReadable else {
      self = JSONFileIndexes()
      return
    }
    // An index whose edits do not fit was dropped, so the list is written again.
    if catalog != nil { catalog = slot.catalog }
    savedEdits = slot.edits
    let changed = Set(missed.keys.map(\.collection))
    for index in entries.keys where changed.contains(index.collection) { entries[index]?.isBehind = true }
    self.missed = areBehind ? missed : [:]
  }

  private mutating func readCatalog(_ part: IndexFilePart, in reader: SnapshotFile) throws(RepositoryError) -> Bool {
    try reader.read(part).withUnsafeBytes { bytes in
      var cursor = IndexFileCursor(bytes)
      guard let count = cursor.count() else { return false }
      for _ in 0..<count {
        guard let number: UInt32 = cursor.number(), let collection = cursor.text()?.text, let name = cursor.text()?.text,
          let directory = cursor.part(), let keyCount = cursor.size(), number < Self.numberLimit, CollectionName.isValid(collection)
        else { return false }
        let run = KeyRun(directory, count: keyCount, in: reader)
        entries[StoredIndexID(collection: collection, name: name)] = Entry(number: number, state: .complete(run))
        nextNumber = max(nextNumber, number + 1)
      }
      return cursor.isAtEnd
    }
  }

  private mutating func readEdits(_ newest: IndexFilePart, in reader: SnapshotFile) throws(RepositoryError) -> Bool {
    var (parts, part, window): ([Data], IndexFilePart, SnapshotFile.Window) = ([], newest, .init())
    while part != .none {
      // A store that flushes after each save writes many small parts.
      let bytes = try reader.read(part, with: 64 << 10, in: &window)
      parts.append(bytes)
      guard
        let before = bytes.withUnsafeBytes({ bytes in
          var cursor = IndexFileCursor(bytes)
          return cursor.part()
        }), before == .none || before.offset < part.offset
      else { return false }
      part = before
    }
    let ids = Dictionary(entries.map { ($0.value.number, $0.key) }) { $1 }
    var changes: [UInt32: [(key: Data, isAddition: Bool)]] = [:]
    for bytes in parts.reversed() where !bytes.withUnsafeBytes({ readEdits(in: $0, of: ids, into: &changes) }) { return false }
    for (number, changes) in changes {
      guard let index = ids[number] else { continue }
      if let edits = RunEdits(changes) {
        entries[index]?.edits = edits
      } else {
        drop(index)
      }
    }
    return true
  }

  private mutating func readEdits(
    in bytes: UnsafeRawBufferPointer, of ids: [UInt32: StoredIndexID], into changes: inout [UInt32: [(key: Data, isAddition: Bool)]]
  ) -> Bool {
    var cursor = IndexFileCursor(bytes)
    guard cursor.part() != nil, let count = cursor.count() else { return false }
    for _ in 0..<count {
      guard let number: UInt32 = cursor.number(), let kind: UInt32 = cursor.number(), (1...3).contains(kind), number < Self.numberLimit
      else {
        return false
      }
      // The edits of an index that was dropped, or that is not complete, stay in the file until the next checkpoint.
      let isKnown = ids[number] != nil
      for isAddition in [false, true] where kind & (isAddition ? 2 : 1) != 0 {
        guard let key = cursor.data(), key.count <= KeyRunFormat.longestKey else { return false }
        if isKnown { changes[number, default: []].append((key, isAddition)) }
      }
      nextNumber = max(nextNumber, number + 1)
    }
    return cursor.isAtEnd
  }
}

/// A complete index, whose keys are to be written to the index file of the next main file.
struct IndexDraft: Sendable {
  let index: StoredIndexID
  let number: UInt32
  let keys: RunKeys
}
