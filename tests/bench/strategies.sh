#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Strategies on recorded spaces, by performance over time; the table of the README:
#
#     tests/bench/strategies.sh [SQUALL] [FOLDER] [OPTION of compare]...
#
# SQUALL is the program (build/gcc/ui/squall), FOLDER has the recordings (../shared/recorded beside the
# source). Without options: all strategies, 100 runs of each on the six complete spaces. Nothing but
# the seed decides the results, so the machine need not be idle; on one core it takes some ten minutes,
# most of them for `evolutionary`.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
squall=${1:-$root/build/gcc/ui/squall}
folder=${2:-$root/../shared/recorded}
[ $# -ge 2 ] && shift 2 || shift $#
for name in convolution6_A6000 convolution_A100 convolution_MI250X gemm_RTX3090_slim \
    dedispersion_W6600_slim pnpoly_RTX3090; do
    files="${files:-} $folder/$name.json.gz"
done
# shellcheck disable=SC2086 # file by file
exec "$squall" compare --runs 100 --seed 2025 "$@" $files
