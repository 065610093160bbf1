-- What Flink's SQL client is asked to run, one statement per paragraph; flink_screens.json has what it shows of Flink's gateway.
SET 'sql-client.execution.result-mode' = 'tableau';

SHOW CATALOGS;

SHOW CURRENT CATALOG;

CREATE DATABASE shop COMMENT 'what is sold';

SHOW DATABASES;

USE shop;

SHOW CURRENT DATABASE;

CREATE TABLE orders (
  id INT NOT NULL,
  name STRING,
  price DECIMAL(10, 2),
  paid AS price * 2,
  made TIMESTAMP(3),
  WATERMARK FOR made AS made - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'orders of a day' WITH ('connector' = 'datagen', 'number-of-rows' = '3');

DESCRIBE orders;

SHOW TABLES;

SHOW COLUMNS FROM orders;

SHOW CREATE TABLE orders;

CREATE TABLE numbers (id INT, name STRING) WITH (
  'connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '3',
  'fields.name.kind' = 'sequence', 'fields.name.start' = '1', 'fields.name.end' = '3');

CREATE VIEW few AS SELECT id FROM numbers WHERE id < 3;

SHOW VIEWS;

DESCRIBE few;

SHOW CREATE VIEW few;

CREATE TABLE nothing (id INT, name STRING) WITH ('connector' = 'blackhole');

ALTER TABLE nothing ADD (extra BIGINT COMMENT 'more');

ALTER TABLE nothing DROP extra;

ALTER TABLE nothing RENAME TO void;

SELECT id, id * 1.5 AS half_more, CAST(NULL AS STRING) AS no_name FROM numbers;

SELECT id FROM few;

SET 'table.exec.mini-batch.enabled' = 'false';

SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t(x);

RESET 'table.exec.mini-batch.enabled';

EXPLAIN SELECT id FROM few;

EXPLAIN ESTIMATED_COST SELECT 1;

INSERT INTO void SELECT id, name FROM numbers;

SET 'table.dml-sync' = 'true';

INSERT INTO void SELECT id, name FROM numbers;

SET 'table.dml-sync' = 'false';

EXECUTE STATEMENT SET BEGIN
INSERT INTO void SELECT id, 'a' FROM numbers;
INSERT INTO void SELECT id, 'b' FROM numbers;
END;

BEGIN STATEMENT SET;

INSERT INTO void SELECT id, 'a' FROM numbers;

INSERT INTO void SELECT id, 'b' FROM numbers;

END;

INSERT INTO void SELECT id FROM numbers;

SELECT id + name + TRUE FROM numbers;

SET 'execution.runtime-mode' = 'batch';

SELECT name, COUNT(*) AS n, SUM(x) AS total
FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(name, x) GROUP BY name ORDER BY name;

SELECT TRUE AS b, CAST(1 AS TINYINT) AS ti, CAST(2 AS BIGINT) AS bi, CAST(1.5 AS DOUBLE) AS dbl, CAST(0.1 AS FLOAT) AS fl,
  CAST(12.3 AS DECIMAL(10, 4)) AS dec4, 'text' AS s, x'00ff' AS raw_bytes;

SELECT DATE '2024-02-29' AS d, TIME '12:34:56' AS t, TIMESTAMP '2024-02-29 12:34:56.789' AS ts,
  ARRAY[1, 2] AS a, MAP['k', 1] AS m, ROW(1, 'x') AS r;

SELECT '東京' AS wide, 'a fairly long text that goes beyond thirty characters' AS long_text;

SELECT * FROM (VALUES (1)) AS t(x) WHERE x > 1;

WITH t AS (SELECT 1 AS x UNION ALL SELECT 2) SELECT x FROM t ORDER BY x DESC;

VALUES (1, 'one'), (2, 'two');

SELECT CAST('x' AS INT) AS number;

SELECT * FROM missing;

SELECT nme FROM numbers;

SELEC 1;

CREATE TABLE numbers (id INT) WITH ('connector' = 'blackhole');

DROP TABLE missing;

DROP TABLE IF EXISTS missing;

USE missing;

CREATE TABLE wrong (id INT) WITH ('connector' = 'nosuch');

SELECT * FROM wrong;

RESET 'execution.runtime-mode';

SET 'parallelism.default' = 'many';

SHOW MODULES;

SHOW FULL MODULES;

SHOW USER FUNCTIONS;

SHOW JARS;

CREATE CATALOG other WITH ('type' = 'generic_in_memory');

SHOW CATALOGS LIKE 'o%';

DESCRIBE CATALOG other;

USE CATALOG other;

SHOW TABLES FROM default_catalog.shop LIKE 'n%';

USE CATALOG default_catalog;

DROP CATALOG other;

USE shop;

DROP VIEW few;

DROP DATABASE shop;

USE default_database;

DROP DATABASE shop CASCADE;

SHOW DATABASES;

STOP JOB '00000000000000000000000000000000';
