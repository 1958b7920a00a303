#!/bin/sh
# Stands for nvcc in info-cuda.test: what ptxas says of one kernel.
cat <<'END'
ptxas info    : Compiling entry function '_Z9compute_yPfPKf' for 'sm_90'
ptxas info    : Function properties for _Z9compute_yPfPKf
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 16896 bytes smem
END
