"""``ropewalk plot``: figures as PNG or SVG."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import RopewalkError

EPILOG = """\
Examples:
  ropewalk bench --against all --output field.json && ropewalk plot bandwidth field.json --out b.png
  ropewalk plot decode field.json --out decode.svg
  ropewalk plot error --out error.png
  ropewalk plot spectrum config.json --out spectrum.png
  ropewalk plot scaling config.json --factor 8 --out scaling.png
  ropewalk plot decay --out decay.png
  ropewalk lab waves --json > waves.json && ropewalk plot lab waves.json --out waves.png"""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "ropewalk plot", description="Draw measured results, or what can be computed.",
        formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOG,
    )  # fmt: skip
    kinds = p.add_subparsers(dest="kind", required=True, metavar="FIGURE")

    def kind(name: str, text: str) -> argparse.ArgumentParser:
        added = kinds.add_parser(name, help=text, description=text)
        added.add_argument("--out", type=Path, required=True, metavar="FILE", help=".png or .svg")
        return added

    bandwidth = kind("bandwidth", "GB/s against length or heads, from a file of bench --against")
    bandwidth.add_argument("results", type=Path)
    bandwidth.add_argument("--by", choices=("tokens", "heads"), default="tokens")
    kind("decode", "latency at few tokens, from such a file").add_argument("results", type=Path)
    for name, text in (("error", "error of cosine and sine against position"),
                       ("decay", "long-distance decay of the attention score")):  # fmt: skip
        added = kind(name, text)
        added.add_argument("--head-dim", type=int, default=128)
        if name == "error":
            added.add_argument("--base", type=float, default=10000.0)
    kind("spectrum", "wavelength of every pair of a config").add_argument("config", type=Path)
    for name, text in (("lab", "a lab's result, from a file of lab NAME --json"),
                       ("lengths", "models beyond their trained length, from bench/lengths")):  # fmt: skip
        kind(name, text).add_argument("results", type=Path)
    scaling = kind("scaling", "the schedules side by side, from a config's base and sizes; "
                   "LongRoPE, whose factors are searched for a model, where the config has them")  # fmt: skip
    scaling.add_argument("config", type=Path)
    scaling.add_argument("--factor", type=float, default=8.0, help="beyond the trained length")
    return p


def _draw(arguments: argparse.Namespace, axes) -> None:
    from ..plots import computed, labs, lengths, results

    if arguments.kind in ("bandwidth", "decode"):
        rows, machine = results.load(arguments.results)
        if arguments.kind == "decode":
            results.plot_decode(axes, rows, machine)
        else:
            results.plot_bandwidth(axes, rows, machine, arguments.by)
    elif arguments.kind == "lab":
        labs.plot_lab(axes, labs.load(arguments.results))
    elif arguments.kind == "lengths":
        lengths.plot_lengths(axes, lengths.load(arguments.results))
    elif arguments.kind == "error":
        computed.plot_error(axes, arguments.head_dim, arguments.base)
    elif arguments.kind == "decay":
        computed.plot_decay(axes, arguments.head_dim)
    elif arguments.kind == "spectrum":
        computed.plot_spectrum(axes, arguments.config)
    else:
        computed.plot_scaling(axes, arguments.config, arguments.factor)


def main(words: list[str]) -> int:
    arguments = parser().parse_args(words)
    if arguments.out.suffix not in (".png", ".svg"):
        return _fail(f"--out: expected a name in .png or .svg, got {arguments.out}")
    try:
        import matplotlib as mpl
    except ImportError:
        return _fail("matplotlib is not installed (pip install matplotlib)")
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 5), layout="constrained")
    try:
        _draw(arguments, axes)
        figure.savefig(arguments.out, dpi=130)
    except (OSError, ValueError, RopewalkError) as error:
        return _fail(str(error))
    finally:
        pyplot.close(figure)
    return 0


def _fail(message: str) -> int:
    print(f"ropewalk: plot: {message}", file=sys.stderr)
    return 2
