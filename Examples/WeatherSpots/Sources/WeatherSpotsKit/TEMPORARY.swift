import Foundation
import Larder
func SQLiteBackend(file: URL) -> any StorageBackend { JSONFileBackend(file: file) }
