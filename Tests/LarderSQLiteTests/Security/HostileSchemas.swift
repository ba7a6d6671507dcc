/// Statements that make a store into one that does harm to a careless reader.
///
/// The tests of the tool have a link to this file.
enum HostileSchemas {
  /// Schemas that make SQLite compute, write or read elsewhere when a plain table would only be read.
  static let otherShapes = [
    // Other tables in the place of the store's own.
    "DROP TABLE larder_store; CREATE VIEW larder_store AS SELECT 1 AS id",
    "ALTER TABLE larder_store RENAME TO old; CREATE VIEW larder_store AS SELECT * FROM old",
    "ALTER TABLE spots RENAME TO larder_old; CREATE VIEW spots AS SELECT * FROM larder_old",
    "DROP TABLE spots; CREATE TABLE spots (id TEXT PRIMARY KEY, revision, version, crc, value) WITHOUT ROWID",
    "DROP TABLE spots; CREATE TABLE spots (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, "
      + "crc INTEGER NOT NULL, value TEXT NOT NULL AS (hex(id)) STORED) WITHOUT ROWID",
    "DROP TABLE spots; CREATE TABLE spots (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, "
      + "crc INTEGER NOT NULL, value TEXT NOT NULL CHECK (length(randomblob(9)) > 0)) WITHOUT ROWID",
    "DROP TABLE spots; CREATE TABLE spots (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, "
      + "crc INTEGER NOT NULL, value TEXT NOT NULL DEFAULT (load_extension('x'))) WITHOUT ROWID",
  ]

  /// Changes that `writable_schema` allows to the schema's own text.
  static let writtenByHand = [
    "UPDATE sqlite_schema SET sql = 'CREATE TABLE spots (id' WHERE name = 'spots'",
    "UPDATE sqlite_schema SET sql = replace(sql, 'value TEXT NOT NULL', 'value TEXT NOT NULL AS (1)') WHERE name = 'spots'",
    "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'spots'", "UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'spots'",
    "UPDATE sqlite_schema SET rootpage = -3 WHERE name = 'spots'",
    "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'larder_store') WHERE name = 'spots'",
    "UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql = 'CREATE VIEW larder_store AS SELECT 1' WHERE name = 'larder_store'",
    "UPDATE sqlite_schema SET name = 'SPOTS', tbl_name = 'SPOTS' WHERE name = 'spots'",
    "UPDATE sqlite_schema SET sql = sql || ' /* ' || hex(zeroblob(500000)) || ' */' WHERE name = 'spots'",
    "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'spots'",
    "DELETE FROM sqlite_schema",
  ]

  /// Tables, triggers and views of other programs, which are let be.
  static let additions = [
    // Tables of modules, one of which reads a file.
    "CREATE VIRTUAL TABLE words USING fts5(text)", "CREATE VIRTUAL TABLE places USING rtree(id, a, b)",
    "PRAGMA writable_schema = ON; "
      + "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING csv(filename=''/etc/passwd'')')",
    "CREATE TABLE \"attached.spots\" (x); CREATE TABLE \"main.spots\" (x)", "CREATE TABLE \"a\"\"; DROP TABLE spots; --\" (x)",
    "CREATE TABLE \"../../etc/passwd\" (x)", "CREATE TABLE x (a CHECK (length(randomblob(1000000000)) > 0)); INSERT INTO x VALUES (NULL)",
    "CREATE TABLE x (a DEFAULT (load_extension('x')))",
    "CREATE TRIGGER t BEFORE INSERT ON spots BEGIN DELETE FROM spots; END",
    "CREATE TRIGGER t AFTER DELETE ON spots BEGIN DELETE FROM spots; END",
    "CREATE TRIGGER t AFTER UPDATE ON larder_store BEGIN DELETE FROM larder_store; END",
    "CREATE VIEW v AS SELECT load_extension('/tmp/x')", "CREATE VIEW v AS SELECT * FROM v2; CREATE VIEW v2 AS SELECT * FROM v",
    "CREATE VIEW v AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c",
  ]
}
