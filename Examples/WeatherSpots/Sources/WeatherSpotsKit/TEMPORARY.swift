import Foundation
import Larder

func JSONFileBackend(file: URL) -> any StorageBackend { InMemoryBackend() }
func SQLiteBackend(file: URL) -> any StorageBackend { InMemoryBackend() }
