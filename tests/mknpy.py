#!/usr/bin/env python3
"""Writes a small array for tests: mknpy.py OUT.npy DTYPE SHAPE VALUE...   (i64 1 5; f32 2,3 0.5 fills it; `scalar` has no axes)"""
import struct, sys

DESCR = {'bool': '|b1', 'u8': '|u1', 'i8': '|i1', 'i32': '<i4', 'i64': '<i8', 'f32': '<f4', 'f64': '<f8'}
FORMAT = {'bool': '?', 'u8': 'B', 'i8': 'b', 'i32': 'i', 'i64': 'q', 'f32': 'f', 'f64': 'd'}


def main():
    out, dtype, shape, *values = sys.argv[1:]
    dims = () if shape == 'scalar' else tuple(int(d) for d in shape.split(','))
    count = 1
    for d in dims:
        count *= d
    values = [(float if dtype[0] == 'f' else int)(v) for v in values]
    values = values * count if len(values) == 1 else values
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (DESCR[dtype], repr(dims))
    head = head.ljust(117) + '\n'
    with open(out, 'wb') as f:
        f.write(b'\x93NUMPY\x01\0' + struct.pack('<H', len(head)) + head.encode())
        f.write(struct.pack('<%d%s' % (count, FORMAT[dtype]), *values))


if __name__ == '__main__':
    main()
