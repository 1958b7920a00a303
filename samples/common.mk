# What the samples' Makefiles share: the settings that a command line may change, and the compiler with the flags of ISA.
PDCC = ../../pdcc
CC = cc
CFLAGS = -O2
LDFLAGS =
OUT = build
ISA = generic
STUB = ../../runtime_stub

SIMD_avx512 = -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma
SIMD_avx2 = -mavx2 -mfma
SIMD_sse4 = -msse4.2
SIMD_native = -march=native
STD_generic = -std=c11
STD = $(or $(STD_$(ISA)),-std=gnu11)

# The folder with the fresh headers comes first.
COMPILE = $(CC) $(STD) -Wall -Wextra $(CFLAGS) $(SIMD_$(ISA)) -I$(OUT) -I. -I.. -I$(STUB)
COMMON = ../common.c $(STUB)/pdrt.c
