#!/usr/bin/env python3
"""Inserts one operator into a legacy Paddle program, as somebody does who changes a model: for tests.

    insert_op.py MODEL.pdmodel VARIABLE OUT.pdmodel

Behind the operator of block 0 that computes VARIABLE comes `scale` by 2; the next one that reads VARIABLE reads what that gives,
which is called VARIABLE_scaled.
"""
import pathlib, struct, sys

from mkmodel import blob, fields, number, varint

VARS, OPS = 3, 4  # fields of BlockDesc
INPUTS, OUTPUTS, TYPE, ATTRS = 1, 2, 3, 4  # of OpDesc
FLOAT, BOOLEAN = 1, 6  # kinds of attributes, and below the fields that hold them
FLOAT_FIELD, BOOLEAN_FIELD = 4, 10


def message(found):
    parts = []
    for field, wire, value in found:
        parts.append(varint(field << 3 | wire))
        parts.append(varint(value) if wire == 0 else varint(len(value)) + value if wire == 2 else value)
    return b''.join(parts)


def arguments(op, which):
    return [a for f, _, slot, _ in fields(op) if f == which for g, _, a, _ in fields(slot) if g == 2]


def renamed(op, name, new):
    """The operator with `new` in place of `name` among its inputs."""
    return message([(f, w, message([(g, x, new if g == 2 and a == name else a) for g, x, a, _ in fields(v)]) if f == INPUTS else v)
                    for f, w, v, _ in fields(op)])


def scale(name, new):
    def slot(argument):
        return blob(1, 'X' if argument is name else 'Out') + blob(2, argument)

    def floating(attr, value):
        return blob(1, attr) + number(2, FLOAT) + varint(FLOAT_FIELD << 3 | 5) + struct.pack('<f', value)

    last = blob(1, 'bias_after_scale') + number(2, BOOLEAN) + number(BOOLEAN_FIELD, 1)
    return b''.join([blob(INPUTS, slot(name)), blob(OUTPUTS, slot(new)), blob(TYPE, 'scale'), blob(ATTRS, floating('scale', 2.0)),
                     blob(ATTRS, floating('bias', 0.0)), blob(ATTRS, last)])


def with_op(block, name):
    new, made, read, out = name + b'_scaled', False, False, []
    for field, wire, value, _ in fields(block):
        if field == OPS and made and not read and name in arguments(value, INPUTS):
            value, read = renamed(value, name, new), True
        out.append((field, wire, value))
        if field == VARS and fields(value)[0][2] == name:
            out.append((VARS, 2, message([(f, w, new if f == 1 else v) for f, w, v, _ in fields(value)])))
        if field == OPS and not made and name in arguments(value, OUTPUTS):
            out.append((OPS, 2, scale(name, new)))
            made = True
    if not read:
        sys.exit(f'insert_op.py: nothing computes and reads {name.decode()}')
    return message(out)


def inserted(program, name):
    out = [part[:3] for part in fields(program)]
    first = next(i for i, (field, _, _) in enumerate(out) if field == 1)
    out[first] = (1, 2, with_op(out[first][2], name.encode()))
    return message(out)


if __name__ == '__main__':
    pathlib.Path(sys.argv[3]).write_bytes(inserted(pathlib.Path(sys.argv[1]).read_bytes(), sys.argv[2]))
