"""The benchmark: every peer on every case, verified first, then timed beside copies of its run."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .cases import Case
from .judge import judge
from .machine import cache_bytes
from .packages import Packages, Unavailable
from .peers.peer import Peer, Rotate, Unsupported
from .setting import Setting
from .timing import Timing, ceilings, sets_for, time_calls

#: Of a row: what became of it.
VERIFIED, WRONG, UNSUPPORTED, UNAVAILABLE, FAILED, TOO_LARGE = (
    "verified", "wrong", "unsupported", "unavailable", "failed", "too large",
)  # fmt: skip


@dataclass
class Row:
    """One peer on one case. Times are None where the result was not right, or was not timed."""

    case: Case
    peer: Peer
    status: str
    reason: str = ""
    error: float | None = None
    error_to_bound: float | None = None
    #: Whether a call that should leave its input alone changed it.
    destroys_input: bool = False
    cold: Timing | None = None
    hot: Timing | None = None
    #: Sets of buffers that the cold calls went round.
    sets: int | None = None
    #: The fastest pass that moves the same bytes, in the same run: (name, timing).
    ceiling: tuple[str, Timing] | None = None
    hot_ceiling: tuple[str, Timing] | None = None

    @property
    def command(self) -> str:
        return f"ropewalk bench --against {self.peer.name} {self.case.options}"


@dataclass(frozen=True)
class Options:
    device: torch.device
    packages: Packages = field(default_factory=Packages)
    seed: int = 0
    seconds: float = 0.2
    verify_only: bool = False
    #: Cases that move more are left out; None: no limit.
    max_bytes: int | None = None


def run(
    cases: Iterable[Case], peers: Iterable[Peer], options: Options,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Row]:  # fmt: skip
    """The rows, as they are ready."""
    peers = list(peers)
    absent: dict[str, str] = {}
    for case in cases:
        if options.max_bytes is not None and case.bytes > options.max_bytes:
            reason = f"moves {case.bytes} bytes, more than --max-bytes {options.max_bytes}"
            yield from (Row(case, peer, TOO_LARGE, reason) for peer in peers)
            continue
        yield from _run_case(case, peers, options, absent, progress)


def _run_case(case, peers, options, absent, progress) -> Iterator[Row]:
    setting = Setting(case, options.device, options.packages, options.seed)
    cold = hot = inputs = None
    sets = sets_for(case.bytes, cache_bytes(options.device))
    for peer in peers:
        if peer.name in absent:
            yield Row(case, peer, UNAVAILABLE, absent[peer.name])
            continue
        progress(f"{case}: {peer.name}")
        row, rotate = _verify(setting, peer)
        if row.status == UNAVAILABLE:
            absent[peer.name] = row.reason
        if row.status == VERIFIED and not options.verify_only:
            if cold is None:
                cold = ceilings(case.bytes, sets, options.seconds, options.device)
                hot = cold
                if sets > 1:
                    hot = ceilings(case.bytes, 1, options.seconds, options.device)
            try:
                if inputs is None:  # one working set for all peers; rotations keep its size
                    inputs = setting.inputs(sets)
                _time(row, rotate, inputs, options.seconds)
            except torch.cuda.OutOfMemoryError:
                row.status, row.reason = FAILED, "not enough memory to time it"
            row.sets = sets
            row.ceiling = fastest(cold, peer.in_place)
            row.hot_ceiling = fastest(hot, peer.in_place)
        yield row
        if options.device.type == "cuda":
            torch.cuda.empty_cache()


def fastest(passes: dict[str, Timing], in_place: bool) -> tuple[str, Timing]:
    wanted = {n: t for n, t in passes.items() if n.endswith("in place") == in_place}
    return min(wanted.items(), key=lambda item: item[1].median_us)


def _prepare(setting: Setting, peer: Peer) -> Rotate:
    # What packages print while they are imported is not part of the answer.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return peer.prepare(setting)


def _verify(setting: Setting, peer: Peer) -> tuple[Row, Rotate | None]:
    row, rotate = Row(setting.case, peer, VERIFIED), None
    try:
        with torch.no_grad():
            rotate = _prepare(setting, peer)
            q, k = setting.inputs()[0]
            given = (q.clone(), k.clone())
            got = tuple(x.clone() for x in rotate(q, k))
        verdict = judge(setting, given, got)
    except Unavailable as error:
        row.status, row.reason = UNAVAILABLE, str(error)
    except Unsupported as error:
        row.status, row.reason = UNSUPPORTED, str(error)
    except Exception as error:  # noqa: BLE001 - whatever another package raises is its result
        lines = str(error).strip().splitlines() or [type(error).__name__]
        row.status, row.reason = FAILED, lines[0][:200]
    else:
        row.error, row.error_to_bound = verdict.error, verdict.error_to_bound
        kept = all(torch.equal(x, y) for x, y in zip(given, (q, k), strict=True))
        row.destroys_input = not kept and not peer.in_place
        if not verdict.right:
            row.status = WRONG
            row.reason = f"error {verdict.error:.2g}, {verdict.error_to_bound:.3g} of the bound"
    return row, rotate


def _time(row: Row, rotate: Rotate, inputs: list[tuple[Tensor, Tensor]], seconds: float) -> None:
    with torch.no_grad():
        row.cold = time_calls(rotate, inputs, seconds)
        row.hot = time_calls(rotate, inputs[:1], seconds) if len(inputs) > 1 else row.cold


def columns(row: Row) -> dict[str, object]:
    """A row as it is written: names and plain values; absent numbers are None."""
    case, cold, hot = row.case, row.cold, row.hot
    flat: dict[str, object] = {"peer": row.peer.name, "status": row.status}
    flat |= dataclasses.asdict(case)
    flat |= {
        "in_place": row.peer.in_place,
        "destroys_input": row.destroys_input,
        "error": row.error,
        "error_to_bound": row.error_to_bound,
        "bytes": case.bytes,
        "working_set_bytes": None if row.sets is None else row.sets * case.bytes,
    }
    names = ("us", "spread", "tokens_per_s", "gb_per_s", "ceiling", "ceiling_us", "of_ceiling")
    for kind, timing, ceiling in (("", cold, row.ceiling), ("hot_", hot, row.hot_ceiling)):
        values: tuple = (None,) * len(names)
        if timing is not None and ceiling is not None:
            tokens = case.batch * case.tokens
            values = (
                timing.median_us, timing.spread, tokens / timing.median_us * 1e6,
                case.bytes / timing.median_us * 1e-3, ceiling[0], ceiling[1].median_us,
                ceiling[1].median_us / timing.median_us,
            )  # fmt: skip
        flat |= {kind + name: value for name, value in zip(names, values, strict=True)}
    flat["cuda_graph"] = None if cold is None else cold.graph
    flat["note"] = "; ".join(filter(None, (row.peer.note, row.reason)))
    flat["command"] = row.command
    return flat
