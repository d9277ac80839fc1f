#!/usr/bin/env bash
# Counters of single launches: tools/gpu_profile.sh CUDA_BENCH FOLDER [FILTER...]
#
# Runs cuda_bench --profile under Nsight Compute (ncu on the path or in NCU): one launch of the
# rotation and one of a copy of the same bytes for each case whose name contains a FILTER, without:
# the cases that docs/kernels.md lists as open. Leaves FOLDER/profile.csv, FOLDER/profile.txt (what
# each row is) and FOLDER/profile.md, the table of tools/ncu_table.py.
set -euo pipefail
if [[ $# -lt 2 ]]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
bench=$1
out=$2
shift 2
mkdir -p "$out"

filters=("$@")
if [[ ${#filters[@]} -eq 0 ]]; then
  filters=(
    "middle bfloat16 half bthd out 1x400 " "middle bfloat16 half bthd out 1x800 "
    "middle bfloat16 half bthd out 1x1600 " "middle bfloat16 half bthd out 1x3200 "
    "special bfloat16 half bthd out 1x65536 32+8 D128 int"
    "special bfloat16 half bthd out 1x65536 32+8 D128 mrope"
    'special bfloat16 half bthd in 1x65536 32+8 D128 R64+0$'
    'decode bfloat16 half bthd out 1x1 32+8 D128$' 'decode bfloat16 half bthd out 1x8 32+8 D128$'
    'decode bfloat16 half bthd out 1x256 32+8 D128$'
  )
fi
arguments=()
for filter in "${filters[@]}"; do arguments+=(--filter "$filter"); done

metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
metrics+=,dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_sector_hit_rate.pct
metrics+=,sm__throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active
metrics+=,launch__registers_per_thread,launch__waves_per_multiprocessor
metrics+=,launch__grid_size,launch__block_size,smsp__inst_executed.sum
metrics+=,smsp__issue_active.avg.pct_of_peak_sustained_active

"${NCU:-ncu}" --csv --page raw --clock-control none --profile-from-start off \
  --metrics "$metrics" --section WarpStateStats --log-file "$out/profile.csv" \
  "$bench" --out "$out/profile.txt" --profile "${arguments[@]}"
python3 "$here/ncu_table.py" "$out/profile.csv" --launches "$out/profile.txt" \
  | tee "$out/profile.md"
