#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The torch worker on a GPU, for the day there is one: NOT RUN ON A GPU yet.
#
# Builds workers/kit and tonnage-worker-torch alone against the PyTorch that is there, exports a small encoder,
# drives the worker through the wire (acceptance.cc), and ends with one line of JSON on standard output. At most
# eight minutes.
#
#   tests/gpu/acceptance.sh                 on cuda:0
#   tests/gpu/acceptance.sh --device cpu    the same against the worker on the host: proves this script
#
# TONNAGE_GPU_PYTHON: an interpreter that has torch (default: build/venv's, else python3). TONNAGE_GPU_CMAKE: further
# arguments of cmake.
# Exit status: 0 all as promised, 1 not, 77 skipped ({"skipped": why}).
set -euo pipefail

readonly BUDGET_S=480
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
device=cuda:0
if [[ $# -eq 2 && $1 == --device ]]; then
  device=$2
elif [[ $# -ne 0 ]]; then
  echo "usage: $0 [--device cpu|cuda:N]" >&2
  exit 2
fi
cap_mib=16384
[[ $device == cpu ]] && cap_mib=320

say() { echo "acceptance: $*" >&2; }
skip() {
  say "SKIPPED: $1"
  printf '{"skipped":"%s"}\n' "${1//\"/\'}"
  exit 77
}
# Runs within what is left of the eight minutes.
within() {
  local left=$((BUDGET_S - SECONDS))
  ((left > 0)) || { say "the $BUDGET_S seconds are over"; exit 1; }
  timeout "$left" "$@"
}

python=${TONNAGE_GPU_PYTHON:-}
if [[ -z $python ]]; then
  python=python3
  [[ -x $root/build/venv/bin/python ]] && python=$root/build/venv/bin/python
fi
for tool in g++ cmake ninja "$python"; do
  command -v "$tool" >/dev/null || skip "$tool is not here"
done

# version, folder, C++11 ABI, CUDA it was built for, devices
if ! torch=$("$python" -c 'import os, torch
cuda = torch.version.cuda or "none"
devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(torch.__version__, os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI), cuda, devices)' 2>/dev/null); then
  skip "$python has no torch; set TONNAGE_GPU_PYTHON"
fi
read -r version torch_dir abi cuda devices <<<"$torch"
say "torch $version in $torch_dir, built for CUDA $cuda, sees $devices devices"
[[ $abi == 1 ]] || skip "torch $version has the old C++ ABI"
[[ $version == 2.13.* ]] || say "NOTE: the worker is written for torch 2.13, this is $version"
if [[ $device == cuda:* ]]; then
  [[ $cuda != none ]] || skip "torch $version was built without CUDA"
  ((devices > ${device#cuda:})) || skip "torch $version sees no $device"
fi

build=$root/build/gpu
mkdir -p "$build"
read -ra more <<<"${TONNAGE_GPU_CMAKE:-}"
say "building in $build"
if ! within cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTONNAGE_FRONT=OFF -DTONNAGE_TESTS=OFF \
  -DTONNAGE_TORCH_DIR="$torch_dir" "${more[@]}" >"$build.log" 2>&1; then
  tail -n 20 "$build.log" >&2
  skip "the configure step failed: fmt comes with torch, nlohmann/json.hpp with nlohmann-json3-dev or in build/vendor/include"
fi
grep -F "tonnage-worker-torch:" "$build.log" >&2
if [[ $device == cuda:* ]] && ! grep -Fq "tonnage-worker-torch: with CUDA" "$build.log"; then
  skip "CUDA's headers or runtime library were not found beside torch or in /usr/local/cuda"
fi
within ninja -C "$build" tonnage-worker-torch gpu_acceptance >>"$build.log" 2>&1 || { tail -n 40 "$build.log" >&2; exit 1; }
say "built after $SECONDS s"

within "$python" -W ignore "$root/tests/gpu/export_encoder.py" "$build/encoder.pt"
say "driving $device under a cap of $cap_mib MiB"
status=0
line=$(within "$build/bin/gpu_acceptance" "$build/bin/tonnage-worker-torch" "$build/encoder.pt" "$device" "$cap_mib") || status=$?
[[ -n $line ]] || { say "no result (status $status)"; exit 1; }
printf '{"torch":"%s","cuda":"%s","seconds":%d,%s\n' "$version" "$cuda" "$SECONDS" "${line#\{}"
exit "$status"
