extension LocalRepository {
  /// Makes a repository with options that lives in memory only and is gone with the process.
  ///
  /// ```swift
  /// let spots = try await LocalRepository(inMemory: RepositorySchema<Spot>("spots"), options: StoreOptions(indexing: .eager))
  /// ```
  ///
  /// - Throws: `.unsupported` for a schema that cannot be stored, and for access by several processes.
  public init(inMemory schema: RepositorySchema<Item>, options: StoreOptions) async throws(RepositoryError) {
    try await self.init(backend: InMemoryBackend(), schema: schema, options: options)
  }
}
