#!/usr/bin/env python3
"""Damages model files and watches pdcc: it must end with status 0 or 1, and quickly. For builds with sanitizers.

    mutate.py [--pdcc PATH] [--rounds N] [--seed N] [--arguments '--emit=ir -o -'] MODEL...

Damage is of two kinds: bytes at random, and fields of the wire format replaced by others that are well formed, which
reaches past the reader: sizes, attribute values and variable names that do not fit together. A failure prints the
command and keeps the file.
"""
import argparse, os, random, shlex, subprocess, sys, tempfile

INTERESTING = [0, 1, 2, 3, 7, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 2,
               (1 << 64) - (1 << 31), 1 << 63]


def varint(n):
    out = bytearray()
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


def damage(data, rng):
    if rng.random() < 0.2:
        out = bytearray(data[:rng.randrange(1, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(1, 8)):
            out[rng.randrange(len(out))] = rng.randrange(256)
        return bytes(out)
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = mutate(data, rng)
    return data


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--pdcc', default=os.environ.get('PDCC', './pdcc'))
    p.add_argument('--rounds', type=int, default=50)
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--timeout', type=float, default=20)
    p.add_argument('--arguments', default='--emit=ir -o -')
    p.add_argument('models', nargs='+')
    o = p.parse_args()
    bad = runs = 0
    folder = tempfile.mkdtemp(prefix='pdcc-mutate-')
    for model in o.models:
        data = open(model, 'rb').read()
        for k in range(o.rounds):
            rng = random.Random(f'{o.seed} {os.path.basename(os.path.dirname(model))} {k}')
            path = os.path.join(folder, f'{runs}.pdmodel')
            with open(path, 'wb') as f:
                f.write(damage(data, rng))
            runs += 1
            cmd = [o.pdcc, path] + shlex.split(o.arguments)
            try:
                r = subprocess.run(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=o.timeout)
                sanitized = b'runtime error' in r.stderr or b'Sanitizer' in r.stderr # they too end with status 1
                ok, why = r.returncode in (0, 1) and not sanitized, f'exit status {r.returncode}'
                err = r.stderr.decode(errors='replace')
                if r.returncode == 1 and 'error' not in err:
                    ok, why = False, 'failed without a message'
            except subprocess.TimeoutExpired:
                ok, why, err = False, 'timeout', ''
            if ok:
                os.unlink(path)
                continue
            bad += 1
            lines = [line for line in err.splitlines() if 'error' in line.lower() or line.lstrip().startswith('#')]
            print(f'{why}: {shlex.join(cmd)} (from {model})', *lines[:6], sep='\n    ', flush=True)
    if not bad:
        os.rmdir(folder)
    print(f'{runs} runs, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
