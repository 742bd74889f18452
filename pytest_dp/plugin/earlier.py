"""Results that runs leave for later ones, in pytest's cache directory and in the folder ``.dp``.

A pair of inputs that broke a claim is tried first next time on new samples like any other, so a
claim that was mended passes. As with Hypothesis' example database, it is forgotten once it no
longer breaks its claim. It is also written as a file that runs as a test: ``.dp/pairs/<claim>.py``.
Evidence adds up across runs with other seeds (``--dp-accumulate``). Claims that passed, and of
which nothing has changed since, need not be run again (``--dp-changed``).
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.basics import clocks
from pytest_dp.basics.atomic_files import write_whole
from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.claiming.settings import NAMES, Settings
from pytest_dp.data.relations import Pair
from pytest_dp.pairs import resolve_promise
from pytest_dp.plugin.claim_session import error_reason, warn_without_failing
from pytest_dp.plugin.options import accumulates, settings_of
from pytest_dp.records.evidence_store import FOLDER, Store, StoredRun, file_name, total_evidence
from pytest_dp.records.identity import identity, is_outside, project_digest, text_of
from pytest_dp.report import numbers
from pytest_dp.report.pair import NoTest, as_source_lines, as_test
from pytest_dp.report.record import Record
from pytest_dp.results.outcome import Evidence, e_value

if TYPE_CHECKING:  # audits load much, and a claim that is unchanged needs none of it
    from pytest_dp.auditors.session import AuditResult, Past


class Earlier:
    """A store of results of earlier runs of one audit, to which this run adds its own.

    `number` counts the audits of a test. Evidence is read and written only if the run accumulates,
    and the mechanism calls no program or service, which gives a warning.
    """

    def __init__(
        self, item: pytest.Item, number: int, claim: Claim, mechanism: object, settings: Settings
    ) -> None:
        self._item, self._number, self._claim = item, number, claim
        self._alpha = settings.alpha
        # If bets on inputs beyond what the claim gives count, it is another claim.
        self._more = ["beyond"] if settings.beyond == "fail" else []
        self._about, self._started = "", ""
        self._name = item.nodeid if number == 1 else f"{item.nodeid}#{number}"
        self._store: Store | None = None
        if accumulates(item.config) and is_outside(mechanism, dict(claim.arguments.params)):
            why = "it calls a program or a service, which may be another by the next run"
            warn_without_failing(
                item, f"its evidence counts in this run only, and does not add up: {why}"
            )
        elif accumulates(item.config):
            self._store = Store(item.config.rootpath)

    @property
    def past(self) -> Past:
        """The functions that read the remembered pair and the earlier evidence, for an audit."""
        from pytest_dp.auditors.session import Past

        return Past(self._remembered_pairs, self._evidence_of_other_seeds)

    def keep(self, result: AuditResult) -> None:
        """Write the pair that broke the claim and the evidence, for later runs; warn on errors."""
        self._keep_pair(result)
        if self._store is None:
            return
        if result.evidence is not None:
            run = StoredRun(
                self._name,
                self._about,
                numbers.format_seed(result.seed),
                self._started,
                result.evidence.samples,
                result.evidence.log_e_values,
                self._alpha,
            )
            self._store.add(run)
        for problem in self._store.problems:
            warn_without_failing(self._item, problem)

    def _evidence_of_other_seeds(self, promise: Promise, seed: int) -> Evidence | None:
        """Return the evidence of earlier runs (`Store.sum_earlier`); None without accumulation."""
        if self._store is None:
            return None
        code = project_digest(self._item.config.rootpath)
        self._about = identity(promise, self._claim.arguments, code, *self._more)
        known = self._store.sum_earlier(
            self._name, self._about, numbers.format_seed(seed), self._alpha
        )
        # After the runs that were read had written their files, so that these come first.
        self._started = clocks.now().isoformat(timespec="microseconds")
        return known

    def _remembered_pairs(self, promise: Promise) -> list[Pair]:
        """Return the pair that broke this promise, in a list; empty without it, or with a seed."""
        if self._item.config.getoption("dp_seed", None) is not None:
            return []
        try:
            file = self._pair_file(promise)
            # our own file, in the cache of this project
            return [] if file is None else [Pair(*pickle.loads(file.read_bytes()))]
        except Exception:  # none, cut short, or of classes that are gone: as good as forgotten
            return []

    def _keep_pair(self, result: AuditResult) -> None:
        """Write the pair that broke the claim, unless it has drawn arguments; a pass removes it."""
        example = (result.beyond or result).counterexample
        try:
            file = self._pair_file(result.claim.promise)
            if file is None:
                return
            if example is not None and not example.params:
                pair = example.d1, example.d2, example.difference, "", dict(example.params)
                write_whole(file, pickle.dumps(pair))
            elif result.verdict == "no violation":
                file.unlink(missing_ok=True)
        except Exception as error:  # a full disk, or inputs that cannot be pickled
            if result.violated:  # else there was nothing to keep
                said = f"could not keep the pair that broke the claim: {error_reason(error)}"
                warn_without_failing(self._item, said)

    def _pair_file(self, promise: Promise) -> Path | None:
        """Return the file of the pair, which depends on the inputs; None if no pair is kept.

        That is without a cache, for explicit pairs and strategies, and for inputs that do not
        pickle.
        """
        cache: Any = getattr(self._item.config, "cache", None)
        # Explicit pairs are tried in any case; what a strategy yields now is not known by its text.
        if cache is None or promise.pairs is not None or is_strategy(promise.inputs):
            return None
        try:
            inputs = pickle.dumps((promise.relation, promise.inputs))
        except Exception:  # nothing tells whether they are the same the next time
            return None
        about = f"{self._item.nodeid}#{self._number} ".encode() + inputs
        name = hashlib.sha256(about).hexdigest()[:20]
        return Path(cache.mkdir("pytest-dp")) / f"{name}.pair"


class PassLookup:
    """A look for an earlier pass of an unchanged claim: `record` is the pass, or None."""

    def __init__(self, item: pytest.Item, mechanism: Any, claim: Claim, place: tuple[str, int]):
        self._item, self._place = item, place
        self.result, self._about = SimpleNamespace(claim=claim, violated=False), ""
        self.record: Record | None = None
        self._store = Store(item.config.rootpath)
        try:
            self._find_pass(mechanism, claim)
        except Exception as error:  # of the user's inputs and objects: the audit tells of it
            note_fault(error, "looking for an earlier pass")
            self._about = ""

    def _find_pass(self, mechanism: Any, claim: Claim) -> None:
        """Look for a pass and set `record`; claims of strategies, programs, services have none."""
        promise, arguments = claim.promise, claim.arguments
        if any(map(is_strategy, (promise.inputs, promise.pairs))) or arguments.drawn:
            return
        if is_outside(mechanism, dict(arguments.params)):
            return
        promise = resolve_promise(promise, self._item.config.rootpath)
        self.result.claim = replace(claim, promise=promise)
        settings = settings_of(self._item.config, claim)
        left_out = ("jobs", "accumulate", "changed")
        said = {name: getattr(settings, name) for name in NAMES if name not in left_out}
        code = project_digest(self._item.config.rootpath)
        self._about = identity(promise, arguments, code, text_of([arguments, said]))
        found = self._store.find_pass(self._item.nodeid, self._about)
        if found is not None:
            with suppress(KeyError, TypeError, ValueError):  # of another form: as good as none
                self.record = self._unchanged_record(Record.from_dict(found))

    def _unchanged_record(self, record: Record) -> Record:
        """Return the record of an earlier pass as that of this run."""
        path, line = self._place
        return replace(
            record,
            path=path,
            line=line,
            status="unchanged",
            headline=f"unchanged since {record.unchanged_since[:10]}, when: {record.headline}",
            samples=0,
            seconds=0.0,
        )

    def keep(self, record: Record) -> None:
        """Write the record of a pass on all inputs, else remove the file; warn on errors."""
        if not self._about:
            return
        plain = None
        if record.status == "no violation" and record.beyond is None:
            since = clocks.now().isoformat(timespec="seconds")
            plain = replace(record, pictures=None, unchanged_since=since).as_dict()
        try:
            self._store.keep_pass(self._item.nodeid, self._about, plain)
        except OSError as error:
            warn_without_failing(
                self._item, f"could not keep that the claim passed: {error.strerror or error}"
            )


def write_pair_file(
    item: pytest.Item, number: int, mechanism: Any, keywords: Mapping[str, Any], result: AuditResult
) -> AuditResult:
    """Write the pair of a violation as a test, and return the result with the path of that file.

    `keywords` are those of the claim, and `number` counts the audits of a test. A pass removes the
    file. The result is unchanged without a pair, or if the claim has this pair only. If the pair
    cannot be written as source, a note says why; errors of writing give a warning.
    """
    root = item.config.rootpath
    folder = root / FOLDER / "pairs"
    if folder in item.path.parents:
        return result  # it is of such a file
    name = f"{item.nodeid}#{number}" if number > 1 else item.nodeid
    file = folder / f"{file_name(name)}.py"
    shown = file.relative_to(root).as_posix()
    try:
        if result.verdict == "no violation":
            file.unlink(missing_ok=True)
        pairs = result.claim.promise.pairs
        is_given = isinstance(pairs, tuple) and len(pairs) == 1  # the claim has this pair only
        if result.counterexample is None or is_given:
            return result
        text = as_test(result, mechanism, keywords, shown, root)
        Store(root).prepare(folder)
        write_whole(file, text.encode())
        return replace(result, pair_file=shown)
    except NoTest as why:
        if as_source_lines(result):  # which says as much
            return result
        return replace(result, notes=(*result.notes, f"no file has this pair as a test: {why}"))
    except OSError as error:
        warn_without_failing(item, f"{shown} could not be written: {error_reason(error)}")
        return result


def describe_evidence(config: pytest.Config) -> Iterator[str]:
    """Yield the lines of ``--dp-evidence``: a few for each claim, and files that cannot be read."""
    store = Store(config.rootpath)
    runs = sorted(store.runs(), key=lambda run: (run.claim, run.identity))
    if not runs:
        yield f"No evidence in {store.folder}: it is collected by pytest --dp-profile=nightly."
    for claim, of_claim in groupby(runs, key=lambda run: run.claim):
        yield claim
        versions = [list(group) for _, group in groupby(of_claim, key=lambda run: run.identity)]
        for version in sorted(versions, key=lambda group: max(run.started for run in group)):
            yield f"  {_version_line(version)}"
    yield from (f"WARNING: {problem}" for problem in store.problems)


def _version_line(runs: list[StoredRun]) -> str:
    """Return a line on the runs of one version of a mechanism and its claim."""
    alpha = min(run.alpha for run in runs)
    evidence = total_evidence(runs, alpha)
    days = sorted({run.started[:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    said = (
        "refuted" if evidence.refutes(alpha) else f"refutes at {numbers.format_e_value(1 / alpha)}"
    )
    value = numbers.format_e_value(e_value(evidence.log_e_value))
    return (
        f"{runs[0].identity}: e-value {value} of {plural(len(runs), 'run')}, "
        f"{numbers.format_count(evidence.samples)} samples, {when}; {said}"
    )
