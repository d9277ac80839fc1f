"""The kinds of public bugs that the tests stand against: the text of docs/bugs.md's rows."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    number: int
    title: str
    wrong: str
    right: str
    # Whose tests these are; only the core's must exist for the map to be written.
    owner: str = "core"


KINDS = (
    Kind(
        1,
        "Positions rounded to the type of the data",
        "Positions go through bfloat16: 257 becomes 256, 131071 becomes 131072, and only 1281 "
        "different angles are left below 65536.",
        "Positions stay integers up to the angle; float positions are an explicit choice.",
    ),
    Kind(
        2,
        "Frequencies or products in half precision",
        "A module cast to half before its first use keeps bfloat16 frequencies; the phase is off "
        "by whole radians after a few thousand tokens.",
        "Angles do not depend on the type of the data.",
    ),
    Kind(
        3,
        "Autocast reaches the angles",
        "Inside an autocast region hundreds of neighbouring positions share one angle.",
        "The bits inside autocast are those outside.",
        "PyTorch",
    ),
    Kind(
        4,
        "Cosine and sine far from zero",
        "Single-precision products and fast intrinsics lose three to five digits at the trained "
        "length, which tests at small positions never see.",
        "One error bound that holds at every valid position.",
    ),
    Kind(
        5,
        "The wrong pairs of channels",
        "Half and interleaved pairing are mixed up, or weights permuted for the other one.",
        "Golden vectors of each pairing, and the permutation that takes one into the other.",
    ),
    Kind(
        7,
        "YaRN's correction range",
        "The truncate flag is ignored, or a range that clamps or has no width divides by zero.",
        "Frequencies with and without rounding, and finite ones in the limiting cases.",
    ),
    Kind(
        8,
        "YaRN's amplitude",
        "The factor of the table, the factor of the softmax scale and an explicit one are taken "
        "for each other, or applied to channels that are not rotated.",
        "Each has its own value; unrotated channels keep their bits.",
    ),
    Kind(
        11,
        "The denominator of a partial rotation",
        "The exponent is divided by the head's width instead of the rotated one, or the other way "
        "round for the proportional kind.",
        "The rotated width, and the head's for the proportional kind, whose last pairs rest.",
    ),
    Kind(
        12,
        "Odd and oversized widths",
        "An odd rotary width covers a channel too many, or one wider than the head is accepted.",
        "Refused when the plan is made, naming both widths.",
    ),
    Kind(
        14,
        "Dimensions of size one",
        "One token, one head or one row takes a wrong stride: zeros, or another row's values.",
        "Every combination of small sizes and layouts equals the oracle.",
    ),
    Kind(
        15,
        "Strides taken for granted",
        "q's strides are used for k, or a view of a packed buffer is taken for contiguous.",
        "Views equal contiguous calls bit for bit and nothing outside them is written.",
    ),
    Kind(
        16,
        "Positions outside the table",
        "Negative or large positions wrap, clamp, or read beyond the table.",
        "An error that names position and limit, before anything is written.",
    ),
    Kind(
        17,
        "Tails of vector code",
        "Widths that are no multiple of the vector read or write past the end, or use the wrong "
        "half of the table.",
        "Every width, offset and kernel, up to the last byte before an unmapped page.",
    ),
    Kind(
        20,
        "The life of a module",
        "Casting, copying, pickling or materialising from the meta device changes frequencies; "
        "stray keys of a checkpoint are loaded.",
        "The bits of a module that was never touched.",
        "PyTorch",
    ),
    Kind(
        21,
        "Gradients",
        "The backward pass uses the forward rotation, forgets the amplitude, or changes its input.",
        "The inverse rotation times the amplitude, exactly the adjoint.",
    ),
    Kind(
        22,
        "Compilation for every length",
        "Each sequence length compiles anew, or the graph breaks.",
        "One compilation over lengths and offsets, and an export with a dynamic length.",
        "PyTorch",
    ),
    Kind(
        23,
        "Head counts that no block divides",
        "The last heads are skipped, or the first of the next token rotated twice.",
        "Any head counts of q and k, with a canary behind the last token.",
    ),
    Kind(
        24,
        "Thresholds between code paths",
        "Results change where the size switches to another kernel.",
        "The same bits on both sides of every switch.",
        "PyTorch and CUDA",
    ),
    Kind(
        25,
        "Rotations that pile up",
        "Cached keys are shifted step by step and lose precision with each.",
        "Two rotations are one by the sum; the total shift is what a caller should keep.",
    ),
    Kind(
        26,
        "Work that does not follow the tokens",
        "Blocks are launched for the longest sequence of every row, or a slow kernel is chosen "
        "unnoticed.",
        "The chosen kernel can be asked for and is never the portable one where a faster one runs.",
    ),
)
