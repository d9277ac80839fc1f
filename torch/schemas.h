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

// Eager calls of the package itself, where plan, token_dim and direction are said by a number
// (known_calls.h). The first tensor of _number_of and _bad_rows only says which library answers.
#define ROPEWALK_NUMBER_OF_SCHEMA \
  "_number_of(Tensor like, str plan, int token_dim, bool inverse) -> int"
#define ROPEWALK_ROTATE_KNOWN_SCHEMA                                            \
  "_rotate_known(Tensor q, Tensor? k, int number, int start, Tensor? positions" \
  ") -> (Tensor, Tensor?)"
#define ROPEWALK_ROTATE_KNOWN_INPLACE_SCHEMA                                               \
  "_rotate_known_(Tensor(a!) q, Tensor(b!)? k, int number, int start, Tensor? positions) " \
  "-> ()"
#define ROPEWALK_BAD_ROWS_SCHEMA "_bad_rows(Tensor like, str plan, bool reset) -> int"
