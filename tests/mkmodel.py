#!/usr/bin/env python3
"""Writes a small legacy Paddle program, and its parameters, from a description: for tests.

    mkmodel.py DESCRIPTION OUT.pdmodel [OUT.pdiparams]

Needs nothing but Python: it writes the wire format itself. A description is a text file; lines that begin with
# or // are comments (so a test may hold its description and its expectations in one file), the others:

    block 1 parent 0                        begins another block; block 0 is there from the start
    var x f32 -1,3                          a LOD_TENSOR; also: persistable, stop_gradient, lod=1, kind=RAW
    param w f32 2,2 = 1,2,3,4               a persistable variable and its data ('= 0.5' fills it)
    feed x 0 / fetch y 0                    the operators, with their column
    op relu X=x -> Out=y                    input slots, then output slots
    op concat X=a,b -> Out=c {axis: 1}      attributes are a Python dict whose keys need no quotes

Attribute kinds follow from the Python value (bool, int, float, str, lists of them). Others are written
L(1), Ls(1, 2), F64(1), F64s(..), VAR('v'), VARS('v', 'w'), BLOCK(1), BLOCKS(1, 2), SCALAR(1), SCALARS(1, 2.5, 1j), and
empty lists INTS(), FLOATS(), STRINGS(), LONGS().
"""
import ast, re, struct, sys

DTYPES = {'bool': 0, 'i16': 1, 'i32': 2, 'i64': 3, 'f16': 4, 'f32': 5, 'f64': 6, 'u8': 20, 'i8': 21, 'bf16': 22,
          'c64': 23, 'c128': 24}
FORMATS = {'bool': '?', 'i16': 'h', 'i32': 'i', 'i64': 'q', 'f16': 'e', 'f32': 'f', 'f64': 'd', 'u8': 'B', 'i8': 'b',
           'bf16': 'H'}
KINDS = {'LOD_TENSOR': 7, 'SELECTED_ROWS': 8, 'FEED_MINIBATCH': 9, 'FETCH_LIST': 10, 'STEP_SCOPES': 11,
         'LOD_TENSOR_ARRAY': 13, 'READER': 15, 'RAW': 17}


# ---- the wire format -------------------------------------------------------------------------------------

def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        n, low = n >> 7, n & 127
        out.append(low | 128 if n else low)
        if not n:
            return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(int(n))


def blob(field, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def f32(field, v):
    return varint(field << 3 | 5) + struct.pack('<f', v)


def f64(field, v):
    return varint(field << 3 | 1) + struct.pack('<d', v)


def fields(data):
    """The fields of a message: (number, wire type, value, raw), where raw is how it stands in the message."""
    at, out = 0, []

    def read_varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    while at < len(data):
        first = at
        tag = read_varint()
        if tag & 7 == 0:
            value = read_varint()
        elif tag & 7 == 2:
            size = read_varint()
            value = data[at:at + size]
            at += size
        else:
            size = 8 if tag & 7 == 1 else 4
            value = data[at:at + size]
            at += size
        out.append((tag >> 3, tag & 7, value, data[first:at]))
    return out


# ---- attributes --------------------------------------------------------------------------------------------

class Typed:
    def __init__(self, kind, *values):
        self.kind, self.values = kind, values


TYPED = {name: (lambda kind: lambda *v: Typed(kind, *v))(kind) for name, kind in {
    'L': 9, 'Ls': 11, 'LONGS': 11, 'F64': 15, 'F64s': 12, 'VAR': 13, 'VARS': 14, 'BLOCK': 8, 'BLOCKS': 10, 'SCALAR': 16,
    'SCALARS': 17, 'INTS': 3, 'FLOATS': 4, 'STRINGS': 5, 'BOOLS': 7}.items()}


def typed(v):
    """A Python value as an attribute kind and a tuple of values."""
    if isinstance(v, Typed):
        return v.kind, v.values
    for cls, single, many in ((bool, 6, 7), (int, 0, 3), (float, 1, 4), (str, 2, 5)):
        if isinstance(v, cls):
            return single, (v,)
        if isinstance(v, (list, tuple)) and v and isinstance(v[0], cls):
            return many, tuple(v)
    return 3, ()


def scalar(v):
    if isinstance(v, bool):
        return number(1, 1) + number(2, v)
    if isinstance(v, int):
        return number(1, 2) + number(3, v)
    if isinstance(v, complex):
        return number(1, 4) + blob(5, f64(1, v.real) + f64(2, v.imag))
    return number(1, 3) + f64(4, v)


WRITE = {0: (3, number), 1: (4, f32), 2: (5, blob), 3: (6, number), 4: (7, f32), 5: (8, blob), 6: (10, number),
         7: (11, number), 8: (12, number), 9: (13, number), 10: (14, number), 11: (15, number), 12: (16, f64), 13: (17, blob),
         14: (18, blob), 15: (19, f64), 16: (20, lambda f, v: blob(f, scalar(v))), 17: (21, lambda f, v: blob(f, scalar(v)))}


def attribute(name, value):
    kind, values = typed(value)
    field, write = WRITE[kind]
    return blob(1, name) + number(2, kind) + b''.join(write(field, v) for v in values)


def parse_attributes(text):
    """{axis: 1, shape: Ls(1, 2)} to a dict, without evaluating anything else than literals and the names above."""
    def value(n):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in TYPED:
            return TYPED[n.func.id](*(value(a) for a in n.args))
        return ast.literal_eval(n)
    tree = ast.parse(text, mode='eval').body
    return {k.id if isinstance(k, ast.Name) else k.value: value(v) for k, v in zip(tree.keys, tree.values)}


# ---- the program -------------------------------------------------------------------------------------------

def tensor_desc(dtype, dims):
    return number(1, DTYPES[dtype] if dtype in DTYPES else int(dtype)) + b''.join(number(2, d) for d in dims)


def variable(name, dtype, dims, flags=()):
    lod = [f[4:] for f in flags if f.startswith('lod=')]
    kind = [f[5:] for f in flags if f.startswith('kind=')] or ['LOD_TENSOR']
    number_of = KINDS[kind[0]] if kind[0] in KINDS else int(kind[0])
    var_type = number(1, number_of)
    if dtype and number_of in (7, 13):
        tensor = blob(1, tensor_desc(dtype, dims)) + (number(2, lod[0]) if lod else b'')
        var_type += blob(3 if number_of == 7 else 4, tensor)
    out = blob(1, name) + blob(2, var_type)
    if 'persistable' in flags:
        out += number(3, 1)
    if 'stop_gradient' in flags:
        out += number(6, 1)
    return out


def slots(field, text):
    out = b''
    for item in text.split():
        name, _, args = item.partition('=')
        out += blob(field, blob(1, name) + b''.join(blob(2, a) for a in args.split(',') if a))
    return out


def operator(kind, ins='', outs='', attrs=None):
    return (slots(1, ins) + slots(2, outs) + blob(3, kind) +
            b''.join(blob(4, attribute(k, v)) for k, v in (attrs or {}).items()))


def record(dtype, dims, values):
    """A parameter as save_combine writes it."""
    count = 1
    for d in dims:
        count *= d
    if len(values) == 1:
        values = values * count
    if len(values) != count:
        sys.exit(f'{len(values)} values for {dims}')
    cast = {'bool': bool, 'f16': float, 'f32': float, 'f64': float}.get(dtype, int)
    data = struct.pack('<%d%s' % (count, FORMATS[dtype]), *(cast(float(v)) for v in values))
    desc = tensor_desc(dtype, dims)
    return struct.pack('<IQIi', 0, 0, 0, len(desc)) + desc + data


class Program:
    def __init__(self):
        self.blocks = [dict(idx=0, parent=-1, vars=[], ops=[])]
        self.params = {}
        self.lists = False

    def line(self, text):
        block = self.blocks[-1]
        word, _, rest = text.partition(' ')
        part = rest.split()
        if word == 'block':
            self.blocks.append(dict(idx=int(part[0]), parent=int(part[2]), vars=[], ops=[]))
        elif word in ('var', 'param'):
            head, _, data = rest.partition('=') if word == 'param' else (rest, '', '')
            part = head.split()
            name, dtype = part[0], part[1] if len(part) > 1 and '=' not in part[1] else None
            dims, flags = [], part[2 if dtype else 1:]
            if flags and re.fullmatch(r'-?\d+(,-?\d+)*|scalar', flags[0]):
                shape = flags.pop(0)
                dims = [] if shape == 'scalar' else [int(d) for d in shape.split(',')]
            if word == 'param':
                flags.append('persistable')
                if data.strip():
                    self.params[name] = record(dtype, dims, data.replace(',', ' ').split())
            block['vars'].append(variable(name, dtype, dims, flags))
        elif word in ('feed', 'fetch'):
            var, col = part[0], int(part[1]) if len(part) > 1 else 0
            if not self.lists:
                self.lists = True
                for name, kind in (('feed', 'FEED_MINIBATCH'), ('fetch', 'FETCH_LIST')):
                    self.blocks[0]['vars'].append(variable(name, None, [], ('persistable', 'kind=' + kind)))
            ins, outs = ('X=feed', f'Out={var}') if word == 'feed' else (f'X={var}', 'Out=fetch')
            block['ops'].append(operator(word, ins, outs, {'col': col}))
        elif word == 'op':
            brace = rest.find('{')
            attrs = parse_attributes(rest[brace:]) if brace >= 0 else {}
            kind, _, args = (rest[:brace] if brace >= 0 else rest).strip().partition(' ')
            ins, _, outs = args.partition('->')
            block['ops'].append(operator(kind, ins, outs, attrs))
        else:
            sys.exit(f'cannot read: {text}')

    def model(self):
        out = b''
        for b in self.blocks:
            out += blob(1, number(1, b['idx']) + number(2, b['parent']) + b''.join(blob(3, v) for v in b['vars']) +
                        b''.join(blob(4, o) for o in b['ops']))
        return out + blob(4, number(1, 0))

    def parameters(self):
        return b''.join(self.params[name] for name in sorted(self.params, key=lambda n: n.encode()))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program = Program()
    for text in open(sys.argv[1]):
        text = text.strip()
        if text and not text.startswith(('#', '//')):
            program.line(text)
    with open(sys.argv[2], 'wb') as f:
        f.write(program.model())
    params = sys.argv[3] if len(sys.argv) == 4 else sys.argv[2].removesuffix('.pdmodel') + '.pdiparams'
    if program.params:
        with open(params, 'wb') as f:
            f.write(program.parameters())


if __name__ == '__main__':
    main()
