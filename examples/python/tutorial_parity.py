"""A rotary embedding tutorial's parity test, corrected.

The usual test compares a fused kernel with the complex-number reference and passes only while both
agree on the pairing. The complex form pairs channels (2i, 2i + 1): it is the *interleaved* pairing.
A kernel that pairs (i, i + dim/2), as rotate_half does, computes the same rotation of permuted
channels; so the test below says which pairing it means, and checks the other under the permutation.
"""

import torch

from ropewalk import RotaryEmbedding
from ropewalk.reference import apply_rope_reference, precompute_freqs_cis


def check(batch: int, heads: int, tokens: int, dim: int) -> None:
    q = torch.randn(batch, heads, tokens, dim)
    k = torch.randn(batch, heads, tokens, dim)
    freqs_cis = precompute_freqs_cis(dim, tokens)
    expected = apply_rope_reference(q, freqs_cis), apply_rope_reference(k, freqs_cis)

    interleaved = RotaryEmbedding(dim, max_seq_len=tokens, pairing="interleaved")
    for got, want in zip(interleaved(q, k), expected, strict=True):
        torch.testing.assert_close(got, want)

    # Half pairing: first all even channels, then all odd ones.
    half = RotaryEmbedding(dim, max_seq_len=tokens, pairing="half")
    permutation = torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])
    for got, want in zip(half(q[..., permutation], k[..., permutation]), expected, strict=True):
        torch.testing.assert_close(got, want[..., permutation])

    # And the scores that attention sees are the same either way.
    scale = dim**-0.5
    scores = expected[0] @ expected[1].transpose(-1, -2) * scale
    q_half, k_half = half(q[..., permutation], k[..., permutation])
    torch.testing.assert_close(q_half @ k_half.transpose(-1, -2) * scale, scores)


if __name__ == "__main__":
    torch.manual_seed(0)
    for shape in ((1, 4, 128, 64), (2, 8, 512, 128)):
        check(*shape)
        print(f"{shape}: interleaved and half agree with the complex reference")
