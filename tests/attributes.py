"""Attributes of recorded programs are read, known to be without effect, or refused.

Each attribute of each operator of the recorded programs is changed, one at a time: the program must be refused, or what it is
translated to must change, unless the operator table says that the attribute has no effect. One that no operator has must be
refused by its name. foo_grad without a row of its own has the attributes of foo: another value than foo's is refused.
"""
import concurrent.futures as futures, pathlib, tempfile

import yaml

from mkmodel import blob, fields, varint
from pdcc_tests import SRC, run


# ---- the wire format ---------------------------------------------------------------------------------

def one(message, number):
    return next((f[2] for f in message if f[0] == number), None)


def replaced(data, path, new):
    """The message with the field at path, a list of positions, replaced by the bytes `new`."""
    parts = fields(data)
    f = parts[path[0]]
    inner = new if len(path) == 1 else blob(f[0], replaced(f[2], path[1:], new))
    return b''.join(p[3] for p in parts[:path[0]]) + inner + b''.join(p[3] for p in parts[path[0] + 1:])


# ---- what is changed ---------------------------------------------------------------------------------

# AttrKind -> the field of OpDesc.Attr that holds it. What names variables and blocks is not changed.
HELD = {0: 3, 1: 4, 2: 5, 3: 6, 4: 7, 5: 8, 6: 10, 7: 11, 9: 13, 11: 15}


def changed(attr):
    """The attribute with another value; None when its kind is not one that is changed."""
    parts = fields(attr)
    kind = one(parts, 2)
    number = HELD.get(kind)
    if number is None:
        return None
    kept = b''.join(f[3] for f in parts if f[0] != number)
    values = [f for f in parts if f[0] == number]
    if kind in (2, 5):
        values = [blob(number, (f[2] or b'') + b'x') for f in values] or [blob(number, 'x')]
    elif kind in (1, 4):
        values = [f[3][:-4] + bytes(a ^ b for a, b in zip(f[2], b'\0\0\x30\x01')) for f in values]
    elif kind in (6, 7):
        values = [varint(number << 3) + varint(1 - f[2]) for f in values]
    else:
        values = [varint(number << 3) + varint(f[2] + 1) for f in values]
    return kept + b''.join(values) if values else None


def table():
    """What the operator table says: for each legacy operator the names without effect (in one of its rows), and those for all."""
    ignored, everywhere = {}, {}
    for path in sorted((SRC / 'ir/ops').glob('*.yaml')):
        for entry in yaml.safe_load(path.read_text()) or []:
            if 'ignored' in entry:
                everywhere = entry['ignored']
            for legacy, how in (entry.get('legacy') or {}).items():
                ignored.setdefault(legacy.partition('.')[0], {}).update(how.get('ignored') or {})
    for legacy in list(ignored):
        ignored.setdefault(legacy + '_grad', ignored[legacy])
    return ignored, everywhere


def no_effect(name, *tables):
    return any(value == 'any' and (name == key or key[0] == '*' and name.endswith(key[1:]))
               for t in tables for key, value in t.items())


def given_by_variables(parts, name):
    """Whether an input decides in place of the attribute: StartsTensor of starts, Offsets of offsets."""
    slots = [fields(f[2]) for f in parts if f[0] == 1]
    names = [one(s, 1).decode().lower() for s in slots if one(s, 2)]
    return any(n == name.lower() or n.startswith(name.lower() + 'tensor') for n in names)


def mutants(model, ignored, everywhere):
    """(operator, attribute, the model with it changed), and one more with an attribute that is not Paddle's."""
    for b, block in enumerate(fields(model)):
        if block[0] != 1:
            continue
        for o, op in enumerate(fields(block[2])):
            parts = fields(op[2]) if op[0] == 4 else []
            kind = (one(parts, 3) or b'').decode()
            if kind not in ignored:
                continue
            extra = blob(4, blob(1, 'not_of_paddle') + varint(2 << 3) + varint(0) + varint(3 << 3) + varint(1))
            yield kind, 'not_of_paddle', replaced(model, [b, o], blob(4, op[2] + extra))
            for a, attr in enumerate(parts):
                name = one(fields(attr[2]), 1).decode() if attr[0] == 4 else None
                skip = not name or no_effect(name, ignored[kind], everywhere) or given_by_variables(parts, name)
                new = None if skip else changed(attr[2])
                if new:
                    yield kind, name, replaced(model, [b, o, a], blob(4, new))




def may_not_matter(kind, name):
    """Read, but without effect in the recorded programs: operands of one rank."""
    aligns = kind.startswith(('elementwise_', 'fused_elemwise_')) or kind in ('equal', 'not_equal', 'less_than', 'less_equal', 'greater_than', 'greater_equal')
    return aligns and name == 'axis'


def translated(t, text, folder, params):
    model = folder / 'model.pdmodel'
    model.write_bytes(text)
    p = run([t.pdcc, model, '-o', folder / 'out.pdir', *(['--params', params] if params else [])])
    return p.returncode, (folder / 'out.pdir').read_text() if p.returncode == 0 else p.stdout


UNLIKE = 'is not that of its forward operator'


def check(t, case, ignored, everywhere):
    """(operator, attribute, what is wrong, or None) for each mutant of a case."""
    model = (case / 'model.pdmodel').read_bytes()
    params = next(iter(case.glob('*.pdiparams')), None)
    found = []
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        code, plain = translated(t, model, tmp, params)
        if code:
            return []
        for kind, name, text in mutants(model, ignored, everywhere):
            code, out = translated(t, text, tmp, params)
            if UNLIKE in out and not kind.endswith('_grad'):
                continue # its gradient operator has noticed: that foo itself reads the attribute is shown by other programs
            if name == 'not_of_paddle':
                wrong = None if code == 1 and f"attribute '{name}' is unknown" in out else 'accepted'
            else:
                wrong = None if code == 1 or (code == 0 and out != plain) else 'passes unseen' if code == 0 else f'exit {code}'
            found.append((kind, name, wrong))
    return found


def check_all(t):
    ignored, everywhere = table()
    cases = sorted(p.parent for p in (SRC / 'tests/corpus/cases').glob('*/model.pdmodel'))
    verdicts = {}
    with futures.ThreadPoolExecutor(2) as pool:
        for case, found in zip(cases, pool.map(lambda c: check(t, c, ignored, everywhere), cases)):
            for kind, name, wrong in found:
                verdicts.setdefault((kind, name), []).append(wrong and f'{wrong} in {case.name}')
    for (kind, name), all_wrong in sorted(verdicts.items()):
        # That an attribute is read somewhere shows that it is read: elsewhere its value may not matter.
        must = name == 'not_of_paddle' or (all(all_wrong) and not may_not_matter(kind, name))
        wrong = next(filter(None, all_wrong), None) if must else None
        yield f'{kind}: {name}', not wrong, wrong
