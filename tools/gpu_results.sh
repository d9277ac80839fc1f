#!/usr/bin/env bash
# The results of the CUDA kernels on this machine's first GPU: tools/gpu_results.sh [STEP...]
#
# Steps, all by default and in this order:
#   build     the library, cuda_checks, cuda_bench and the command line, for this GPU
#   checks    every promise of ropewalk/cuda.h, the quick verification matrix
#   verify    the full verification matrix
#   sanitize  compute-sanitizer memcheck, racecheck and initcheck on reduced checks
#   bench     every case beside its floors
#   policies  the same with every launch policy that can take a case
#   profile   Nsight Compute's counters of the cases that are open
#   models    every shipped model, CPU and GPU
#
# Results go to bench/results/cuda_*_CARD.*, CARD being the GPU's last word in small letters (CARD=
# overrides it); RESULTS= and BUILD= name other folders. A step that fails ends the run; a tool
# that is missing skips its step with one sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,17s/^# \{0,1\}//p' tools/gpu_results.sh
  exit 0
fi
steps=("$@")
if [[ ${#steps[@]} -eq 0 ]]; then
  steps=(build checks verify sanitize bench policies profile models)
fi
build=${BUILD:-build-gpu}
results=${RESULTS:-bench/results}
jobs=${JOBS:-$(nproc)}
command -v nvidia-smi >/dev/null || { echo "gpu_results: no NVIDIA driver here" >&2; exit 1; }
query() { nvidia-smi --query-gpu="$1" --format=csv,noheader -i 0; }
card=${CARD:-$(query name | awk '{print tolower($NF)}')}
mkdir -p "$results"
started=$SECONDS

# What every text file begins with.
heading() {
  echo "machine: $(query name), driver $(query driver_version), SM clock $(query clocks.sm), memory" \
    "clock $(query clocks.mem), $(date -u +%Y-%m-%d)"
  echo "commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
  echo "command: $1"
}
# record FILE COMMAND…: heading, then what the command prints.
record() {
  local file=$1
  shift
  heading "$(basename "$1") ${*:2}" >"$file"
  "$@" 2>&1 | tee -a "$file"
}

step_build() {
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DROPEWALK_CUDA=ON \
    -DROPEWALK_CUDA_ARCHITECTURES=native -DROPEWALK_BUILD_TESTS=OFF -DROPEWALK_BUILD_EXAMPLES=OFF
  cmake --build "$build" -j "$jobs" --target cuda_checks cuda_bench ropewalk_cli
}
step_checks() { record "$results/cuda_checks_$card.txt" "$build/tests/cuda/cuda_checks"; }
step_verify() {
  "$build/cli/ropewalk" verify --device cuda --full --json >"$results/cuda_verify_$card.json"
  tail -3 "$results/cuda_verify_$card.json"
}
step_sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer not found: the checks are not run under it"
    return
  fi
  local file=$results/cuda_sanitizer_$card.txt
  heading "compute-sanitizer --tool TOOL cuda_checks --reduced" >"$file"
  for tool in memcheck racecheck initcheck; do
    echo "== $tool" | tee -a "$file"
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/cuda/cuda_checks" --reduced \
      2>&1 | tee -a "$file"
  done
}
step_bench() { "$build/bench/cuda/cuda_bench" --out "$results/cuda_$card.jsonl"; }
step_policies() {
  "$build/bench/cuda/cuda_bench" --policies --rounds 2 --out "$results/cuda_policies_$card.jsonl"
}
step_profile() {
  if ! command -v "${NCU:-ncu}" >/dev/null; then
    echo "ncu not found: no counters"
    return
  fi
  local folder
  folder=$(mktemp -d)
  tools/gpu_profile.sh "$build/bench/cuda/cuda_bench" "$folder"
  cp "$folder/profile.md" "$results/cuda_profile_$card.md"
  rm -r "$folder"
}
step_models() {
  "$build/cli/ropewalk" run --json >"$results/cuda_models_$card.json"
  "$build/cli/ropewalk" run --device cuda
}

for step in "${steps[@]}"; do
  declare -F "step_$step" >/dev/null || { echo "gpu_results: no step \"$step\"" >&2; exit 2; }
done
for step in "${steps[@]}"; do
  printf '\n== %s (%d s)\n' "$step" $((SECONDS - started))
  "step_$step"
done
printf '\n== done (%d s)\n' $((SECONDS - started))
