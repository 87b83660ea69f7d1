"""Queries on the tables of a job: the first difference of two jobs, outlier ranks, unequal hashes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msdump.analysis.ranks.subjects import GRADIENT_OF
from msdump.analysis.ranks.tables import MORE_COLUMNS, duckdb_path, parse_ranks, parts_of
from msdump.errors import ConfigError, FormatError
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.tables.frames import optional_package

Row = tuple[Any, ...]
# Relative difference of two l2norm that still agree.
TOLERANCE = 1e-5
# The name of a tensor in its step, the same on all ranks.
_NAME = "coalesce(full_name, op_name) AS name"
_KEY = "iteration, graph, name, io, slot_name"
# The values of uninitialised memory differ on every rank.
_MINE = f"SELECT *, {_NAME} FROM tensors WHERE NOT is_unset"
# More than one rank must hold the tensor: texts of several have one of these signs.
_SHARED = "(contains(equal_ranks, '-') OR contains(equal_ranks, ','))"
# What tells two tensors apart: the hash; without one, as of a dump of statistics alone, the largest and the smallest
# element, which every machine finds alike, and the l2norm, whose last digits differ with the order of its sum.
_MARKED = f"""
named AS (
    SELECT *, md5 IS NOT NULL AS has_hash FROM ({_MINE})
    WHERE md5 IS NOT NULL OR coalesce(l2norm, "max", "min") IS NOT NULL  -- a dump may select its statistics
),
marked AS (
    SELECT *, CASE WHEN has_hash THEN md5
        ELSE concat_ws(' ', "max", "min", nan, CASE WHEN l2norm IS NOT DISTINCT FROM middle
             OR abs(l2norm - middle) <= {TOLERANCE} * abs(middle) THEN 'alike' ELSE l2norm::VARCHAR END) END AS mark
    FROM (SELECT *, median(l2norm) OVER (PARTITION BY {_KEY}, equal_ranks, has_hash) AS middle FROM named)
)"""
# Ranks of a group that must agree: the majority's mark, where there is one, and the ranks with another one. In an
# operator inputs come first, as what it read spoiled what it wrote.
_HASHES = f"""
WITH {_MARKED},
shared AS (SELECT * FROM marked WHERE {_SHARED}),
votes AS (
    SELECT {_KEY}, equal_ranks, has_hash, mark, count(*) AS votes, min(operator) AS operator, min(subject) AS subject
    FROM shared GROUP BY {_KEY}, equal_ranks, has_hash, mark
),
groups AS (
    SELECT {_KEY}, equal_ranks, has_hash, min(operator) AS operator, min(subject) AS subject, count(*) AS marks,
           count(*) FILTER (votes = largest) AS winners, arg_max(mark, votes) AS winner
    FROM (SELECT *, max(votes) OVER (PARTITION BY {_KEY}, equal_ranks, has_hash) AS largest FROM votes)
    GROUP BY {_KEY}, equal_ranks, has_hash HAVING count(*) > 1
)
SELECT g.iteration, g.graph, g.operator, g.name, g.subject, g.io, g.slot_name, g.equal_ranks,
       list(DISTINCT n.rank ORDER BY n.rank) FILTER (g.winners > 1 OR n.mark <> g.winner) AS suspects,
       list(DISTINCT n.host ORDER BY n.host)
           FILTER ((g.winners > 1 OR n.mark <> g.winner) AND n.host IS NOT NULL) AS hosts,
       g.winners = 1 AS has_majority
FROM groups g JOIN shared n ON n.iteration IS NOT DISTINCT FROM g.iteration AND n.graph IS NOT DISTINCT FROM g.graph
     AND n.name = g.name AND n.io = g.io AND n.slot_name = g.slot_name AND n.equal_ranks = g.equal_ranks
     AND n.has_hash = g.has_hash
GROUP BY ALL ORDER BY g.iteration, g.graph, g.operator, g.io, g.slot_name, g.equal_ranks
"""
HASH_TITLES = (
    "iteration", "graph", "operator", "name", "subject", "io", "slot", "equal_ranks", "suspects", "hosts",
    "has_majority",
)  # fmt: skip
# Running statistics of a batch norm, which each replica takes from its own part of the batch; rank 0's are kept.
OWN_BY_DESIGN = "(^|[.])(running_mean|running_var|moving_mean|moving_variance)$"
# Parameters and buffers of which no layout says anything, among ranks that are replicas: some other parameter is
# declared equal on them. Ranks of shards or stages are in no such group. What a step reads first is compared, as a
# wrapper may make it equal on the way; what the step left, where the dump has no operator that reads it.
_UNDECLARED = f"""
WITH {_MARKED},
parameters AS (SELECT * FROM marked WHERE subject IS NOT NULL AND NOT starts_with(subject, '{GRADIENT_OF}')),
declared AS (SELECT DISTINCT rank, equal_ranks AS replicas FROM parameters WHERE {_SHARED}),
known AS (SELECT DISTINCT rank, subject FROM parameters WHERE placements IS NOT NULL),
firsts AS (
    SELECT p.rank, p.iteration, p.graph, p.subject, p.has_hash, arg_min(p.mark, p.operator) AS mark,
           arg_min(p.shape, p.operator) AS shape
    FROM parameters p ANTI JOIN known k ON p.rank = k.rank AND p.subject = k.subject
    WHERE NOT regexp_matches(p.subject, '{OWN_BY_DESIGN}')
    GROUP BY p.rank, p.iteration, p.graph, p.subject, p.has_hash
),
votes AS (
    SELECT f.iteration, f.graph, f.subject, f.has_hash, d.replicas, f.mark, f.shape, count(*) AS votes,
           list(f.rank ORDER BY f.rank) AS ranks
    FROM firsts f JOIN declared d ON f.rank = d.rank
    GROUP BY f.iteration, f.graph, f.subject, f.has_hash, d.replicas, f.mark, f.shape
),
groups AS (
    SELECT iteration, graph, subject, replicas, count(*) FILTER (votes = largest) = 1 AS has_majority,
           list_sort(flatten(list(ranks) FILTER (votes < largest))) AS outvoted
    FROM (SELECT *, max(votes) OVER (PARTITION BY iteration, graph, subject, has_hash, replicas) AS largest FROM votes)
    GROUP BY iteration, graph, subject, has_hash, replicas HAVING count(*) > 1 AND count(DISTINCT shape) = 1
)
SELECT subject, iteration, replicas, CASE WHEN has_majority THEN outvoted ELSE [] END AS suspects
FROM groups QUALIFY row_number() OVER (PARTITION BY subject ORDER BY iteration, graph, replicas) = 1
ORDER BY iteration, graph, subject
"""
_UNDECLARED_TITLES = ("name", "iteration", "ranks", "suspects")
# Robust: the median of the ranks, and the median of the distances from it. That of a few ranks is small by chance, and
# healthy ranks lie many of it apart: the fewer there are, the farther one must be, and below eight also tenfold.
_OUTLIERS = f"""
WITH named AS ({_MINE} AND isfinite(l2norm)),
middles AS (SELECT {_KEY}, median(l2norm) AS middle, count(*) AS ranks FROM named GROUP BY {_KEY} HAVING count(*) > 3),
distances AS (
    SELECT n.*, m.middle, m.ranks, abs(n.l2norm - m.middle) AS distance
    FROM named n JOIN middles m ON n.iteration IS NOT DISTINCT FROM m.iteration
         AND n.graph IS NOT DISTINCT FROM m.graph AND n.name = m.name AND n.io = m.io AND n.slot_name = m.slot_name
),
spreads AS (SELECT {_KEY}, median(distance) AS spread FROM distances GROUP BY {_KEY})
SELECT d.rank, d.host, d.iteration, d.graph, d.operator, d.name, d.io, d.slot_name, d.l2norm, d.middle,
       d.distance / greatest(1.4826 * s.spread, 1e-6 * abs(d.middle), 1e-30) AS deviations
FROM distances d JOIN spreads s ON d.iteration IS NOT DISTINCT FROM s.iteration
     AND d.graph IS NOT DISTINCT FROM s.graph AND d.name = s.name AND d.io = s.io AND d.slot_name = s.slot_name
WHERE deviations > 8 * (1 + 4 / (d.ranks - 3))
      AND (d.ranks >= 8 OR greatest(d.l2norm, d.middle) > 10 * least(d.l2norm, d.middle))
ORDER BY deviations DESC, d.iteration, d.operator, d.rank LIMIT 100
"""
_OUTLIER_TITLES = (
    "rank", "host", "iteration", "graph", "operator", "name", "io", "slot", "l2norm", "median", "deviations",
)  # fmt: skip
_FIRST = f"""
WITH mine AS ({_MINE}), other AS (SELECT *, {_NAME} FROM golden),
pairs AS (
    SELECT m.rank, m.host, m.iteration, m.graph, m.operator, m.name, m.io, m.slot_name, m.l2norm, o.l2norm AS golden,
           abs(m.l2norm - o.l2norm) / greatest(abs(m.l2norm), abs(o.l2norm), 1e-30) AS error
    FROM mine m JOIN other o ON m.rank IS NOT DISTINCT FROM o.rank AND m.iteration IS NOT DISTINCT FROM o.iteration
         AND m.graph IS NOT DISTINCT FROM o.graph AND m.name = o.name AND m.io = o.io AND m.slot_name = o.slot_name
    WHERE m.md5 IS DISTINCT FROM o.md5 OR m.md5 IS NULL
),
wrong AS (
    SELECT * FROM pairs
    -- NaN is equal to itself here, and larger than everything else.
    WHERE l2norm IS DISTINCT FROM golden AND (error > $tolerance OR error IS NULL)
),
ordered AS (
    SELECT *, row_number() OVER (PARTITION BY rank ORDER BY iteration, graph, operator, io, slot_name) AS place
    FROM wrong
)
SELECT rank, host, iteration, graph, operator, name, io, slot_name, l2norm, golden, error
FROM ordered WHERE place = 1 ORDER BY iteration, graph, operator, rank
"""
_FIRST_TITLES = (
    "rank", "host", "iteration", "graph", "operator", "name", "io", "slot", "l2norm", "golden l2norm", "error",
)  # fmt: skip

# Sent and received tensors. A buffer that was used too early is known, or recognised by the
# received values: what the buffer held before, or what the sender computed later.
_MESSAGES = f"""
WITH named AS ({_MINE} AND md5 IS NOT NULL),
pairs AS (
    SELECT s.iteration, s.message, s.graph AS send_graph, s.operator AS send_operator, s.rank AS source,
           s.host AS source_host, s.name AS send, s.misuse AS send_misuse,
           r.graph AS receive_graph, r.operator AS receive_operator, r.rank AS destination,
           r.host AS destination_host, r.name AS receive, r.misuse AS receive_misuse, r.md5 AS arrived
    FROM (SELECT * FROM named WHERE message_end = 'sent') s
    JOIN (SELECT * FROM named WHERE message_end = 'received') r
         ON s.message = r.message AND s.iteration IS NOT DISTINCT FROM r.iteration
    WHERE s.md5 <> r.md5
),
stale AS (
    SELECT DISTINCT p.iteration, p.message FROM pairs p JOIN named b
         ON b.rank = p.destination AND b.iteration IS NOT DISTINCT FROM p.iteration AND b.graph = p.receive_graph
         AND b.name = p.receive AND b.io = 'input' AND b.md5 = p.arrived
),
later AS (
    SELECT p.iteration, p.message, arg_min(o.name, (o.graph, o.operator)) AS name FROM pairs p JOIN named o
         ON o.rank = p.source AND o.iteration IS NOT DISTINCT FROM p.iteration AND o.io = 'output'
         AND o.md5 = p.arrived AND (o.graph, o.operator) > (p.send_graph, p.send_operator)
    GROUP BY p.iteration, p.message
),
judged AS (
    SELECT p.*, CASE
        WHEN receive_misuse IS NOT NULL THEN receive_misuse
        WHEN send_misuse IS NOT NULL THEN send_misuse
        WHEN stale.message IS NOT NULL THEN 'what the buffer of the receive held before'
        WHEN later.name IS NOT NULL THEN 'what the sender computed later in ' || later.name
    END AS cause,
    receive_misuse IS NOT NULL OR (send_misuse IS NULL AND stale.message IS NOT NULL) AS is_receiver,
    send_misuse IS NOT NULL OR later.name IS NOT NULL AS is_sender
    FROM pairs p LEFT JOIN stale ON stale.iteration IS NOT DISTINCT FROM p.iteration AND stale.message = p.message
         LEFT JOIN later ON later.iteration IS NOT DISTINCT FROM p.iteration AND later.message = p.message
)
SELECT iteration, message, source, send, destination, receive,
       CASE WHEN is_receiver THEN [destination] WHEN is_sender THEN [source] ELSE [source, destination] END AS suspects,
       list_sort(list_distinct(list_filter(CASE WHEN is_receiver THEN [destination_host] WHEN is_sender
           THEN [source_host] ELSE [source_host, destination_host] END, lambda host: host IS NOT NULL))) AS hosts,
       cause, is_receiver OR is_sender AS is_known
FROM judged ORDER BY iteration, send_graph, send_operator, message
"""
_MESSAGE_TITLES = (
    "iteration", "message", "source", "send", "destination", "receive", "suspects", "hosts", "cause", "is_known",
)  # fmt: skip

# Ranks of a job wait for each other, so that one tensor is dumped by all of them within about a minute.
_LATE_SECONDS = 60
_CLOCKS = f"""
WITH named AS (
    SELECT rank, {_KEY}, time_us / 1e6 AS seconds FROM ({_MINE}) WHERE time_us > 0 AND rank IS NOT NULL
),
middles AS (SELECT {_KEY}, median(seconds) AS middle FROM named GROUP BY {_KEY} HAVING count(DISTINCT rank) > 2),
ahead AS (
    SELECT n.rank, median(n.seconds - m.middle) AS seconds FROM named n JOIN middles m
         ON n.iteration IS NOT DISTINCT FROM m.iteration AND n.graph IS NOT DISTINCT FROM m.graph
         AND n.name = m.name AND n.io = m.io AND n.slot_name = m.slot_name
    GROUP BY n.rank
)
SELECT rank, seconds FROM ahead WHERE abs(seconds) > $most ORDER BY rank
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of an answer, the first one the first in the logical time of the job where the question is about time."""

    titles: tuple[str, ...]
    rows: tuple[Row, ...]


# DuckDB's parser takes 10 GB for 9,000 brackets inside of each other, and its limit of memory does not count them. They
# are counted wherever they stand, also in texts: what is one is the parser's to say.
_MOST_BRACKETS = 500


# Of a query of a stranger, beside a training on the same machine.
_MOST_MEMORY, _MOST_THREADS = "2GiB", 2


class Tables:
    """Tables of a job as one.   damaged: (file, what is wrong) of parts that cannot be read and are left out."""

    def __init__(
        self,
        tables: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        golden: str | os.PathLike[str] | None = None,
        selection: StepSelection = ALL_STEPS,
    ) -> None:
        """Open them.

        tables  folders, or parts themselves
        Raises: ConfigError when duckdb is not installed; FormatError when there is no part that can be read.
        """
        self._duckdb = optional_package("duckdb", "query")
        self._database = self._duckdb.connect()
        self.damaged: list[tuple[str, FormatError]] = []
        self._paths: list[str] = []
        self._add("tensors", parts_of(tables, selection))
        self.has_golden = golden is not None
        if golden is not None:
            self._add("golden", parts_of(golden, selection))

    def _add(self, name: str, parts: Sequence[os.PathLike[str]]) -> None:
        whole = []
        for part in parts:
            try:
                path = duckdb_path(part)
                self._database.read_parquet([path], hive_partitioning=False).limit(0).fetchall()
                whole.append(path)
                self._paths += [path, os.path.abspath(part)]  # DuckDB checks the pattern, and then what it matches
            except self._duckdb.Error as error:
                problem = FormatError(f"{part}: expected a whole table, got: {str(error).splitlines()[0]}.")
                self.damaged.append((os.fspath(part), problem))
            except FormatError as error:
                self.damaged.append((os.fspath(part), error))
        if not whole:
            raise self.damaged[0][1]
        # Parts of older versions lack newer columns: NULL.
        rows = self._database.read_parquet(whole, union_by_name=True, hive_partitioning=False)
        absent = [f"NULL AS {column.name}" for column in MORE_COLUMNS if column.name not in rows.columns]
        rows.project(", ".join(["*", *absent])).create_view(name)

    def confine(self) -> None:
        """From now on refuse every query that writes a file, or reads another one than these tables, and end one that
        takes more than _MOST_MEMORY; a query has _MOST_THREADS threads.
        """
        # What does not fit is an error, not a file in the current folder.
        self._database.execute(f"SET memory_limit = '{_MOST_MEMORY}'; SET temp_directory = ''")
        threads = self._database.execute("SELECT current_setting('threads')").fetchone()
        self._database.execute(f"SET threads = {min(_MOST_THREADS, threads[0])}")
        paths = ", ".join("'" + path.replace("'", "''") + "'" for path in self._paths)
        self._database.execute(f"SET allowed_paths = [{paths}]")
        # Without it a query may name variables of this program as its tables.
        self._database.execute("SET python_enable_replacements = false")
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")

    def sql(self, query: str) -> Any:
        """The result of a query of your own, about the table `tensors`, and `golden` where there is one.

        Raises: ConfigError for a wrong query.
        """
        if (count := sum(map(query.count, "([{"))) > _MOST_BRACKETS:
            raise ConfigError(f"SQL: expected at most {_MOST_BRACKETS} brackets, got {count}. Ask several queries.")
        try:
            return self._database.sql(query)
        except self._duckdb.Error as error:
            raise ConfigError(f"SQL: expected a query about the table tensors, got: {error}") from error

    def answer(self, query: str) -> Answer:
        """The rows of `sql`.   Raises: as `sql`, also for what fails on the way."""
        relation = self.sql(query)
        if relation is None:  # a statement without a result
            return Answer((), ())
        try:
            rows = relation.fetchall()
        except self._duckdb.Error as error:
            raise ConfigError(f"SQL: expected a query about the table tensors, got: {error}") from error
        return Answer(tuple(relation.columns), tuple(rows))

    def hashes(self) -> Answer:
        """Tensors that must be equal on some ranks and are not, in logical time; a tie makes all of them suspects.

        Edges: without hashes the statistics are compared, which small differences leave alike.
        """
        column = HASH_TITLES.index("equal_ranks")
        rows = self._database.execute(_HASHES).fetchall()
        return Answer(HASH_TITLES, tuple((*row[:column], parse_ranks(row[column]), *row[column + 1 :]) for row in rows))

    def undeclared(self) -> Answer:
        """Parameters and buffers that differ between replicas of a model, and that nothing declares equal.

        Each stands there once, for the first iteration in which it differs. Ranks are replicas where another parameter
        is declared equal on them; running statistics of a batch norm are left out, as each rank has its own.
        """
        column = _UNDECLARED_TITLES.index("ranks")
        rows = self._database.execute(_UNDECLARED).fetchall()
        return Answer(
            _UNDECLARED_TITLES, tuple((*row[:column], parse_ranks(row[column]), *row[column + 1 :]) for row in rows)
        )

    def messages(self) -> Answer:
        """Messages that arrived as something else than was sent; without a known cause both ranks are suspects."""
        return Answer(_MESSAGE_TITLES, tuple(self._database.execute(_MESSAGES).fetchall()))

    def outliers(self) -> Answer:
        """Tensors whose l2norm is more than 8 robust standard deviations from the median of at least 4 ranks."""
        return Answer(_OUTLIER_TITLES, tuple(self._database.execute(_OUTLIERS).fetchall()))

    def first_divergence(self, tolerance: float = TOLERANCE) -> Answer:
        """Of each rank the first tensor that differs from the golden job's, the first of the job on top.

        tolerance  relative difference of the l2norm that still agrees; equal hashes agree in any case
        Raises: ConfigError without golden tables.
        """
        if not self.has_golden:
            raise ConfigError("first-divergence: expected golden tables, got none. Give --golden TABLES.")
        return Answer(_FIRST_TITLES, tuple(self._database.execute(_FIRST, {"tolerance": tolerance}).fetchall()))

    def compared(self) -> int:
        """How many tensors of groups of ranks, and messages, have hashes or statistics that must be equal."""
        query = f"WITH {_MARKED} SELECT count(DISTINCT ({_KEY}, equal_ranks)) FROM marked WHERE {_SHARED}"
        messages = (
            f"SELECT count(*) FROM (SELECT iteration, message FROM ({_MINE} AND md5 IS NOT NULL) "
            "WHERE message IS NOT NULL GROUP BY ALL HAVING count(DISTINCT message_end) = 2)"
        )
        return sum(int(self._database.execute(text).fetchone()[0]) for text in (query, messages))

    def unhashed(self) -> int:
        """How many of these have statistics alone."""
        are_unhashed = f"{_SHARED} AND NOT has_hash"
        query = f"WITH {_MARKED} SELECT count(DISTINCT ({_KEY}, equal_ranks)) FROM marked WHERE {are_unhashed}"
        return int(self._database.execute(query).fetchone()[0])

    def ranks(self) -> dict[int, tuple[str | None, tuple[int, ...]]]:
        """Rank -> its host and iterations."""
        query = "SELECT rank, any_value(host), list(DISTINCT iteration ORDER BY iteration) FROM tensors GROUP BY rank"
        return {rank: (host, tuple(steps)) for rank, host, steps in self._database.execute(query).fetchall()}

    def rank_counts(self) -> dict[int, int]:
        """Rank -> how many ranks its job has, where that is known."""
        query = "SELECT rank, max(rank_count) FROM tensors WHERE rank_count IS NOT NULL GROUP BY rank"
        return dict(self._database.execute(query).fetchall())

    def versions(self) -> dict[int, str]:
        """Rank -> the version that dumped it, where that is known."""
        query = "SELECT rank, max(version) FROM tensors WHERE version IS NOT NULL AND rank IS NOT NULL GROUP BY rank"
        return dict(self._database.execute(query).fetchall())

    def clocks(self) -> dict[int, float]:
        """Rank -> seconds by which its clock is ahead of most others', where that is more than a rank may be late."""
        return dict(self._database.execute(_CLOCKS, {"most": _LATE_SECONDS}).fetchall())


QUESTIONS: Sequence[str] = ("hashes", "messages", "outliers", "first-divergence")
