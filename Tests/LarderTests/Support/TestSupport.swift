// What all test targets of the package share: seeds, directories of a test's own, codes of errors.
@_exported import TestSupport
