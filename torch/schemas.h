// The operators' schemas; docs/pytorch.md explains the arguments.
#pragma once

// The public operators check for autograd (python/ropewalk/ops.py); the underscored twins are what
// the package itself calls where that is already decided.
#define ROPEWALK_ROTATE_TAIL                                                                  \
  "str plan, int token_dim=-2, SymInt start=0, Tensor? positions=None, Tensor? starts=None, " \
  "Tensor? cu_seqlens=None, Tensor? cos=None, Tensor? sin=None, int? padding=None, "          \
  "bool fractional=False, bool inverse=False"
#define ROPEWALK_ROTATE_SCHEMA(name) \
  name "(Tensor q, Tensor? k, " ROPEWALK_ROTATE_TAIL ") -> (Tensor, Tensor?)"
#define ROPEWALK_ROTATE_INPLACE_SCHEMA(name) \
  name "(Tensor(a!) q, Tensor(b!)? k, " ROPEWALK_ROTATE_TAIL ") -> ()"
#define ROPEWALK_ROTATE_OUT_SCHEMA(name)                 \
  name ".out(Tensor q, Tensor? k, " ROPEWALK_ROTATE_TAIL \
       ", *, Tensor(a!) q_out, Tensor(b!)? k_out=None) -> ()"
