#!/usr/bin/env python3
"""Damages models and IR text and watches pdcc: it must end with status 0 or 1, soon, and leave no output when it fails.

    mutate.py [--pdcc PATH] [--rounds N] [--seed N] [--stage NAME,...] [--seconds N] MODEL...

MODEL is a .pdmodel (parameters beside it are used as they are), a program of Paddle 3 (.json), a .pdir text, or a
description for mkmodel.py (.test, .txt). Damage is of three kinds: bytes at random; fields of the wire format replaced by others that are well formed;
and values of attributes, sizes and names of variables that do not fit together, which gets past the readers and the
translation; of JSON, whole subtrees change places, too. Text is damaged by numbers, words and lines. Meant for builds with sanitizers (make asan). A failure
prints the command and keeps the file.
"""
import argparse, json, os, pathlib, random, re, shlex, shutil, subprocess, sys, tempfile, time

INTERESTING = [0, 1, 2, 3, 7, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 2,
               (1 << 64) - (1 << 31), 1 << 63]
# Values that mean something to an operator: axes, sizes, strides, groups, repeats, and what overflows in products.
MEANT = [0, 1, -1, 2, -2, 3, 4, 5, 6, 8, 16, 63, 64, 100, -3, -7, 12, 13, 255, 1000, 4096, 65536, 1 << 20, (1 << 31) - 1, -(1 << 31),
         1 << 24, 1 << 30, 1 << 40, (1 << 62), (1 << 63) - 1, -(1 << 63)]
PASSES = 'canonicalize fold fold-batch-norm cse dce decompose layout to-loops fuse plan'.split()
STAGES = {
    'ir': ['--emit=ir', '-o', '-'],
    'generic': ['--isa=generic', '-o', 'OUT.c'],
    'avx2': ['--isa=avx2', '-o', 'OUT.c'],
    'inline': ['--isa=avx2', '--weights=inline', '-o', 'OUT.c'],
    'cuda': ['-o', 'OUT.cu'],
    'cfg': ['-o', 'OUT.cfg'],
    'info': ['info'],
    'interp': ['run', '--target=interp', '--out-dir', 'OUT'], # with the arrays recorded beside the model
    'run': ['run', '--isa=generic', '--cflags', '-O1 -w -fsanitize=address,undefined', '--out-dir', 'OUT'],
    'opt': ['opt', '--passes=PASSES', '-o', 'OUT.pdir'],
}


# ---- the wire format -------------------------------------------------------------------------------------------

def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while True:
        n, low = n >> 7, n & 127
        out.append(low | 128 if n else low)
        if not n:
            return bytes(out)


def read_varint(data, at):
    n = shift = 0
    while at < len(data) and shift < 70:
        n |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return n, at
        shift += 7
    raise ValueError


def fields(data):
    """The fields of a message as [number, wire type, value]; ValueError when it is none."""
    out, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError
        if at > len(data):
            raise ValueError
        out.append([number, wire, value])
    return out


def encode(items):
    out = b''
    for number, wire, value in items:
        out += varint(number << 3 | wire)
        out += varint(value) if wire == 0 else value if wire != 2 else varint(len(value)) + value
    return out


# ---- damage to models ------------------------------------------------------------------------------------------

def mutate(data, rng, depth=0):
    """Changes one field somewhere below."""
    try:
        items = fields(data)
    except ValueError:
        items = []
    if not items or (data.isalnum() and rng.random() < 0.8):
        pick = bytearray(data)
        if pick:
            pick[rng.randrange(len(pick))] = rng.choice(b'abcXY_0\xff')
        return bytes(pick)
    # By size, so that it is mostly operators and attributes that are hit.
    i = rng.choices(range(len(items)), [len(v) + 1 if w == 2 else 4 for _, w, v in items])[0]
    number, wire, value = items[i]
    dice = rng.random()
    if dice < 0.05:
        del items[i]
    elif dice < 0.10:
        items.insert(i, list(items[rng.randrange(len(items))]))
    elif dice < 0.15:
        items[i][2] = next((v for n, w, v in rng.sample(items, len(items)) if w == wire), value)
    elif wire == 0:
        items[i][2] = rng.choice(INTERESTING)
    elif wire in (1, 5):
        items[i][2] = bytes(rng.choice((0, 255, 128, 127)) for _ in value)
    elif depth < 8:
        items[i][2] = mutate(value, rng, depth + 1)
    return encode(items)


def pick_item(items, numbers, rng):
    found = [i for i, (n, w, v) in enumerate(items) if n in numbers and w == 2]
    return rng.choice(found) if found else None


def change_below(data, path, change, rng):
    """Applies `change` to the bytes of a message reached by field numbers; as it was when there is none."""
    if not path:
        return change(data, rng)
    items = fields(data)
    i = pick_item(items, path[0], rng)
    if i is None:
        return data
    items[i][2] = change_below(items[i][2], path[1:], change, rng)
    return encode(items)


def change_attribute(data, rng):
    """Another value, one value more or less; the kind stays."""
    items = fields(data)
    values = [i for i, (n, w, v) in enumerate(items) if n > 2 and not (n == 12 or n == 14)]
    if not values:
        return data
    i = rng.choice(values)
    number, wire, value = items[i]
    dice = rng.random()
    if number in (6, 7, 8, 11, 15, 16) and dice < 0.3:
        if dice < 0.15:
            del items[i]
        else:
            items.insert(i, list(items[i]))
    elif wire == 0:
        items[i][2] = rng.choice(MEANT)
    elif wire in (1, 5):
        items[i][2] = rng.choice((b'\0' * len(value), b'\xff' * len(value), value[:-2] + b'\x80\x7f', value[:-1] + b'\xbf'))
    else:
        items[i][2] = rng.choice((b'', b'NHWC', b'AnyLayout', b'SAME', b'max', b'\xff', value + b'x'))
    return encode(items)


def change_size(data, rng):
    """One dim of a TensorDesc, or its element type, or its rank."""
    items = fields(data)
    dims = [i for i, (n, w, v) in enumerate(items) if n == 2 and w == 0]
    dice = rng.random()
    if dice < 0.15 or not dims:
        for item in items:
            if item[0] == 1 and item[1] == 0:
                item[2] = rng.choice([0, 1, 2, 3, 4, 5, 6, 20, 21, 22, 23, 24])
    elif dice < 0.3:
        del items[rng.choice(dims)]
    elif dice < 0.45:
        items.insert(dims[0], [2, 0, rng.choice([1, 2, 3, -1])])
    else:
        items[rng.choice(dims)][2] = rng.choice(MEANT)
    return encode(items)


def change_arguments(data, rng):
    """Another variable of the same operator in a slot: shapes and types that do not fit."""
    items = fields(data)
    slots = [i for i, (n, w, v) in enumerate(items) if n in (1, 2) and w == 2]
    names = [v for i in slots for n, w, v in fields(items[i][2]) if n == 2]
    if not slots or not names:
        return data
    i = rng.choice(slots)
    slot = fields(items[i][2])
    if rng.random() < 0.3:
        slot.append([2, 2, rng.choice(names)])
    elif rng.random() < 0.3:
        slot = [item for item in slot if item[0] != 2]
    else:
        for item in slot:
            if item[0] == 2 and rng.random() < 0.7:
                item[2] = rng.choice(names)
    items[i][2] = encode(slot)
    return encode(items)


BLOCK, VAR, OP, ATTR = (1,), (3,), (4,), (4,)


def change_block(data, rng):
    """The operators of a block: one goes, stands twice, changes places with another, or reads or writes what another does."""
    items = fields(data)
    ops = [i for i, (n, w, v) in enumerate(items) if n in OP and w == 2]
    if not ops:
        return data
    i, k, dice = rng.choice(ops), rng.choice(ops), rng.random()
    if dice < 0.2:
        del items[i]
    elif dice < 0.35:
        items.insert(k, list(items[i]))
    elif dice < 0.6:
        items[i], items[k] = items[k], items[i]
    else:
        op, other = fields(items[i][2]), fields(items[k][2])
        slots = [s for s in op if s[0] in (1, 2) and s[1] == 2]
        names = [v for s in other if s[0] in (1, 2) and s[1] == 2 for n, w, v in fields(s[2]) if n == 2]
        if slots and names:
            slot = rng.choice(slots)
            slot[2] = encode([[n, w, rng.choice(names) if n == 2 else v] for n, w, v in fields(slot[2])])
            items[i][2] = encode(op)
    return encode(items)


def change_control(data, rng):
    """What belongs to loops and branches: another sub-block, parent, condition, mask, scope, kind of variable, position of an array."""
    items = fields(data)
    blocks = [i for i, (n, w, v) in enumerate(items) if n in BLOCK and w == 2]
    if not blocks:
        return data
    b = rng.choice(blocks)
    block = fields(items[b][2])
    control = [i for i, (n, w, v) in enumerate(block) if n in OP and w == 2 and re.search(
        b'while|conditional_block|select_|array|recurrent|increment|less_than|logical_not|rank_table|assign', v)]
    dice = rng.random()
    if control and dice < 0.7:
        i = rng.choice(control)
        op = fields(block[i][2])
        if dice < 0.3:
            change = lambda m, r: encode([[n, w, r.randrange(len(blocks) + 1) if n in (12, 14) and w == 0 else v] for n, w, v in fields(m)])
            attrs = [a for a in op if a[0] in ATTR and a[1] == 2 and b'block' in a[2]]
            if attrs:
                attr = rng.choice(attrs)
                attr[2] = change(attr[2], rng)
            block[i][2] = encode(op)
        else:
            block[i][2] = change_arguments(block[i][2], rng)
    elif dice < 0.8: # the block's parent
        for item in block:
            if item[0] == 2 and item[1] == 0:
                item[2] = rng.randrange(len(blocks) + 1)
    else: # a variable becomes another kind: a tensor array, scopes, a rank table
        found = pick_item(block, VAR, rng)
        if found is not None:
            var = fields(block[found][2])
            kind = pick_item(var, (2,), rng)
            if kind is not None:
                var[kind][2] = encode([[n, w, rng.choice([7, 11, 12, 13, 17]) if n == 1 else v] for n, w, v in fields(var[kind][2])])
                block[found][2] = encode(var)
    items[b][2] = encode(block)
    return encode(items)


def damage_meaning(data, rng):
    kind = rng.random()
    if kind < 0.15:
        return change_below(data, (BLOCK,), change_block, rng)
    if kind < 0.35 and (b'while' in data or b'conditional_block' in data or b'array' in data):
        return change_control(data, rng)
    if kind < 0.65:
        return change_below(data, (BLOCK, OP, ATTR), change_attribute, rng)
    if kind < 0.85: # VarDesc.type.(lod_tensor | tensor_array).tensor
        return change_below(data, (BLOCK, VAR, (2,), (3, 4), (1,)), change_size, rng)
    return change_below(data, (BLOCK, OP), change_arguments, rng)


def damage_model(data, rng):
    dice = rng.random()
    if dice < 0.08:
        out = bytearray(data[:rng.randrange(1, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(1, 8)):
            out[rng.randrange(len(out))] = rng.randrange(256)
        return bytes(out)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        try:
            data = (mutate if dice < 0.25 else damage_meaning)(data, rng)
        except ValueError:
            break
    return data


# ---- damage to programs of Paddle 3 ----------------------------------------------------------------------------

ODD = ['', '1.conv2d', '1.while', '1.if', '0.combine', '0.split', '2.yield', '1.fetch', '1.array_write_', 'p', 'NULL', '0.t_vec',
       '0.t_f16', '0.a_array', '1.a_intarray', '\u0000', 'x' * 300, None, True, [], {}, [[]], 1.5, -1e308, 1e400, 10 ** 30]


def json_places(node, out):
    """Every (container, key) of a document."""
    for key in (list(node) if isinstance(node, dict) else range(len(node))):
        out.append((node, key))
        if isinstance(node[key], (dict, list)):
            json_places(node[key], out)
    return out


def damage_json(data, rng):
    dice = rng.random()
    if dice < 0.1:
        out = bytearray(data[:rng.randrange(1, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(1, 8)):
            out[rng.randrange(len(out))] = rng.choice(b'[]{},:"0-9eE.tfn\\ \xff\0')
        return bytes(out)
    document = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = json_places(document, [])
        node, key = rng.choice(places)
        old, dice = node[key], rng.random()
        other, at = rng.choice([p for p in places if type(p[0][p[1]]) is type(old)])
        if dice < 0.15:
            del node[key]
        elif dice < 0.3 and isinstance(node, list):
            node.insert(key, json.loads(json.dumps(rng.choice(node))))
        elif dice < 0.4:
            node[key] = rng.choice(ODD)
        elif isinstance(old, int) and dice < 0.8:
            node[key] = rng.choice(MEANT)
        else: # what stands elsewhere
            node[key] = json.loads(json.dumps(other[at]))
        if not document:
            break
    return json.dumps(document).encode()


# ---- damage to text --------------------------------------------------------------------------------------------

TOKEN = re.compile(rb'"[^"\n]*"|[%^?!][\w#.]*|-?\d[\w.]*|[A-Za-z_][\w.]*|[^\s\w]')


def token_class(t):
    return t[:1] if t[:1] in b'%^?!"' else b'0' if re.match(rb'-?\d', t) else b'a' if t[:1].isalpha() else t


def damage_text(data, rng):
    for _ in range(rng.choice((1, 1, 2, 4))):
        dice = rng.random()
        lines = data.split(b'\n')
        at = rng.randrange(len(lines))
        if dice < 0.08:
            del lines[at]
            data = b'\n'.join(lines)
        elif dice < 0.16:
            lines.insert(at, rng.choice(lines))
            data = b'\n'.join(lines)
        elif dice < 0.20:
            data = data[:rng.randrange(len(data) + 1)]
        else:
            tokens = list(TOKEN.finditer(data))
            if not tokens:
                break
            t = rng.choice(tokens)
            old = t.group()
            alike = [u.group() for u in tokens if token_class(u.group()) == token_class(old)]
            if token_class(old) == b'0' and rng.random() < 0.7:
                new = b'%d' % rng.choice(MEANT)
            elif rng.random() < 0.1:
                new = rng.choice((b'', b'(', b'{', b'}', b'^0', b'%x', b'\xff', b'"', b'[', old + old))
            else:
                new = rng.choice(alike)
            data = data[:t.start()] + new + data[t.end():]
    return data


# ---- running ---------------------------------------------------------------------------------------------------

class Fuzz:
    def __init__(self, options):
        self.o = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='pdcc-mutate-'))
        self.bad = self.runs = self.accepted = 0
        # A request for memory that only a machine with gigabytes to spare could meet is a failure of pdcc here.
        self.env = dict(os.environ, PDCC_MEMORY='1000')

    def load(self, path):
        """(suffix, bytes, parameters or None) of a seed."""
        path = pathlib.Path(path)
        if path.suffix in ('.test', '.txt'):
            made = self.folder / 'seed.pdmodel'
            maker = pathlib.Path(__file__).resolve().parent.parent / 'mkmodel.py'
            subprocess.run([sys.executable, maker, path, made], check=True)
            params = made.with_suffix('.pdiparams')
            if params.exists():
                params = params.rename(self.folder / (path.stem + '.pdiparams'))
            return '.pdmodel', made.read_bytes(), params if params.exists() else None
        params = path.with_suffix('.pdiparams')
        return path.suffix, path.read_bytes(), params if params.exists() else None

    @staticmethod
    def inputs(model):
        """--in for the feeds of a recorded case's first run."""
        case = pathlib.Path(model).with_name('case.yaml')
        text = case.read_text() if case.exists() else ''
        feeds = text[text.find('feeds:'):text.find('fetches:')]
        return [f'--in={name.strip(chr(39))}={case.parent / file}' for name, file in re.findall(r'^ +(\S+): \{file: ([^,}]+)', feeds, re.M)]

    def judge(self, cmd, data):
        """(ok, why, text) of one run."""
        try:
            r = subprocess.run(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=self.o.timeout, env=self.env)
        except subprocess.TimeoutExpired:
            return cmd[1] == 'run' and b'while' in data, 'timeout', '' # a loop may have no end
        err = r.stderr.decode(errors='replace')
        left = [p.name for p in self.folder.glob('OUT*')] + [p.name for p in self.folder.glob('.OUT*')]
        self.accepted += r.returncode == 0
        if r.returncode not in (0, 1) or 'runtime error' in err or 'Sanitizer' in err: # these too end with status 1
            return False, f'exit status {r.returncode}', err
        if r.returncode == 1 and ('error' not in err or 'bug of pdcc' in err):
            return False, 'failed without a message', err
        if 'out of memory' in err and cmd[1] != 'run':
            return False, 'asked for too much memory', err
        if 'is out of range for axis' in err and not str(cmd).count('.pdir'): # the interpreter checks what generated code relies on
            return False, 'accepted a program that reads outside of its tensors', err
        if r.returncode == 1 and left and cmd[1] != 'run':
            return False, f'failed and left {left}', err
        return True, '', err

    def one(self, model, seed, stage, number):
        suffix, data, params = seed
        rng = random.Random(f'{self.o.seed} {os.path.basename(os.path.dirname(model))} {number}')
        path = self.folder / f'{self.runs}{suffix}'
        data = {'.pdir': damage_text, '.json': damage_json}.get(suffix, damage_model)(data, rng)
        path.write_bytes(data)
        self.runs += 1
        passes = ','.join(sorted(rng.sample(PASSES, rng.randrange(len(PASSES))), key=PASSES.index)) # in their order
        arguments = [a.replace('OUT', str(self.folder / 'OUT')).replace('PASSES', passes) for a in STAGES[stage]]
        command = [arguments.pop(0)] if not arguments[0].startswith('-') else []
        cmd = [self.o.pdcc, *command, str(path), *arguments, *(['--params', str(params)] if params else [])]
        cmd += self.inputs(model) if command == ['run'] else []
        ok, why, err = self.judge(cmd, data)
        for p in [*self.folder.glob('OUT*'), *self.folder.glob('.OUT*')]:
            shutil.rmtree(p) if p.is_dir() else p.unlink()
        if ok:
            path.unlink()
            return
        self.bad += 1
        lines = [line for line in err.splitlines() if 'error' in line.lower() or line.lstrip().startswith('#')]
        print(f'{why}: {shlex.join(map(str, cmd))} (from {model} {self.o.seed} {number} {stage})', *lines[:10], sep='\n    ',
              flush=True)

    def finish(self):
        if not self.bad:
            shutil.rmtree(self.folder)
        print(f'{self.runs} runs, {self.accepted} accepted, {self.bad} failed')
        return 1 if self.bad else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--pdcc', default=os.environ.get('PDCC', './pdcc'))
    p.add_argument('--rounds', type=int, default=50)
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--timeout', type=float, default=20)
    p.add_argument('--seconds', type=float, default=1e9, help='stop after so many')
    p.add_argument('--stage', default='ir,generic,avx2', help='one of these at each round: ' + ' '.join(STAGES))
    p.add_argument('models', nargs='*')
    o = p.parse_args()
    fuzz, end, stages = Fuzz(o), time.monotonic() + o.seconds, o.stage.split(',')
    for number in range(o.rounds): # round by round, so that a run cut short has seen every model
        for k, model in enumerate(o.models):
            if time.monotonic() > end:
                return fuzz.finish()
            fuzz.one(model, fuzz.load(model), stages[(number + k) % len(stages)], number)
    return fuzz.finish()


if __name__ == '__main__':
    sys.exit(main())
