"""Makes a program that fails smaller, for control.py --shrink: as long as the failure stays the same, drops outputs and
operations, takes loops and branches away or puts one of their regions in their place, drops what they pass on, and makes
constants smaller. Works on any IR text, as pdcc prints it.
"""
import copy, pathlib, re, sys, tempfile

import control


def split(text):
    """The parts of a list between commas outside of brackets."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in '<([{') - (c in '>)]}')
        if c == ',' and depth == 0:
            parts.append(text[at:i].strip())
            at = i + 1
    last = text[at:].strip()
    return parts + [last] if last else parts


# ---- programs as trees ------------------------------------------------------------------------------------------------

class Op:
    def __init__(self, results, name, args, attrs, ins, outs):
        self.results, self.name, self.args, self.attrs, self.ins, self.outs = results, name, args, attrs, ins, outs
        self.regions = []  # (name, [(argument, type)], [Op])

    def text(self, depth, lines):
        head = '%s%s(%s)%s : (%s) -> (%s)' % (', '.join(self.results) + ' = ' if self.results else '', self.name, ', '.join(self.args),
                                             self.attrs, ', '.join(self.ins), ', '.join(self.outs))
        lines.append('  ' * depth + head)
        for name, args, ops in self.regions:
            lines[-1] += ' %s {' % name
            if args:
                lines.append('  ' * (depth + 1) + '^0(%s):' % ', '.join('%s: %s' % a for a in args))
            for op in ops:
                op.text(depth + 1 + bool(args), lines)
            lines.append('  ' * depth + '}')


HEAD = re.compile(r'(?:(%.*?) = )?([a-z_]+\.\w+)\((.*?)\)(.*?) : \((.*)\) -> \((.*?)\)((?: \w+)? \{)?$')


def parse(text):
    """The operations of a module."""
    module = []
    stack = [module]  # of the lists that are open
    owners = []
    for line in text.splitlines()[1:]:
        line = re.sub(r'!s?p?(?= =|,|$)', '', re.sub(r' loc\((?:[^()"]|"[^"]*")*\)', '', line.strip()))
        line = re.sub(r'(%[\w#."]+)![sp]+', r'\1', line)
        if not line or line.startswith('//'):
            continue
        block = re.match(r'\^0\((.*)\):$', line)
        close = re.match(r'\}(?: (\w+) \{)?$', line)
        open_ = re.match(r'(\w+) \{$', line)
        if block:
            owners[-1].regions[-1][1].extend(tuple(a.split(': ', 1)) for a in split(block[1]))
        elif close:
            stack.pop()
            if not stack:
                break
            if close[1]:
                begin_region(owners[-1], close[1], stack)
            else:
                owners.pop()
        elif open_:
            owners.append(stack[-1][-1])
            begin_region(owners[-1], open_[1], stack)
        else:
            m = HEAD.match(line)
            if not m:
                sys.exit('cannot read: ' + line)
            op = Op(split(m[1] or ''), m[2], split(m[3]), m[4], split(m[5]), split(m[6]))
            stack[-1].append(op)
            if m[7]:
                owners.append(op)
                begin_region(op, m[7].strip(' {'), stack)
    return module


def begin_region(op, name, stack):
    ops = []
    op.regions.append((name, [], ops))
    stack.append(ops)


def module_text(ops):
    lines = []
    for op in ops:
        op.text(1, lines)
    return 'builtin.module {\n' + '\n'.join(lines) + '\n}\n'


def walk(ops):
    """Every list of operations with the position of each in it, inner ones last."""
    for op in list(ops):
        for _, _, inner in op.regions:
            yield from walk(inner)
    yield ops


def rename(ops, names):
    for op in ops:
        op.args = [names.get(a, a) for a in op.args]
        for _, _, inner in op.regions:
            rename(inner, names)


def used(ops, out):
    for op in ops:
        out.update(op.args)
        for _, _, inner in op.regions:
            used(inner, out)
    return out


def drop_dead(ops):
    """Removes what nobody reads. True: something went."""
    names, gone = used(ops, set()), False
    for block in walk(ops):
        keep = [op for op in block if not op.results or any(r in names for r in op.results)]
        gone, block[:] = gone or len(keep) < len(block), keep
    return gone


# ---- steps ------------------------------------------------------------------------------------------------------------

def scopes(ops, seen=()):
    """(block, position, values in sight) of every operation, the last first."""
    seen, found = list(seen), []
    for i, op in enumerate(ops):
        found.append((ops, i, list(seen)))
        for _, args, inner in op.regions:
            found += scopes(inner, seen + args)
        seen += zip(op.results, op.outs)
    return found


def replaced(ops, k, substitutes):
    """Takes operation k away; its results become other values. None: there are none of that type."""
    block, i, seen = scopes(ops)[k]
    op, names, live = block[i], {}, used(ops, set())
    for j, (r, t) in enumerate(zip(op.results, op.outs)):
        if r not in live:
            continue
        near = [a for a, u in zip(op.args, op.ins) if u == t]
        if op.name == 'pd.while' and op.ins[j] == t:
            near = [op.args[j]]
        options = near + [v for v, u in reversed(seen) if u == t]
        if len(options) <= substitutes:
            return None
        names[r] = options[substitutes]
    if not op.results and op.name != 'pd.fetch':
        return None
    del block[i]
    rename(ops, names)
    return ops


def inlined(ops, k, region):
    """One round of a loop, or one side of a branch, in place of the whole."""
    block, i, _ = scopes(ops)[k]
    op = block[i]
    if len(op.regions) <= region or op.name not in ('pd.if', 'pd.while'):
        return None
    _, args, inner = op.regions[region]
    end = inner[-1]
    names = dict(zip((a for a, _ in args), op.args))
    given = end.args[1:] if end.name == 'cf.cond_yield' else end.args
    block[i:i + 1] = inner[:-1]
    rename(inner, names)
    rename(ops, {r: names.get(g, g) for r, g in zip(op.results, given)})
    return ops


def without_slot(ops, k, slot):
    """A loop or branch that passes one value less."""
    block, i, seen = scopes(ops)[k]
    op = block[i]
    if op.name not in ('pd.if', 'pd.while') or slot >= len(op.results):
        return None
    loop = op.name == 'pd.while'
    other = [op.args[slot]] if loop else [v for v, t in reversed(seen) if t == op.outs[slot]]
    if not other and op.results[slot] in used(ops, set()):
        return None
    names = {op.results[slot]: other[0]} if other else {}
    for _, args, inner in op.regions:
        end, at = inner[-1], slot + (inner[-1].name == 'cf.cond_yield')
        del end.args[at], end.ins[at]
        if loop:
            names[args[slot][0]] = op.args[slot]
            del args[slot]
    del op.results[slot], op.outs[slot]
    if loop:
        del op.args[slot], op.ins[slot]
    rename(ops, names)
    return ops


def smaller_constant(ops, k, choice):
    block, i, _ = scopes(ops)[k]
    op = block[i]
    m = re.match(r' \{value = dense<(.*) \[(.*)\]>\}$', op.attrs)
    if op.name != 'builtin.constant' or not m:
        return None
    old = split(m[2])
    zero, one = ('0.0', '1.0') if '.' in old[0] else ('0', '1')
    new = [zero] * len(old) if choice == 0 else [one] * len(old) if choice == 1 else [old[0]] * len(old)
    if new == old or (choice == 1 and set(old) == {zero}):
        return None
    op.attrs = ' {value = dense<%s [%s]>}' % (m[1], ', '.join(new))
    return ops


STEPS = [(replaced, 3), (inlined, 2), (without_slot, 8), (smaller_constant, 3)]


def shrink(ops, fails):
    """Steps that keep the failure, from the last operation to the first, until none does."""
    changed = True
    while changed:
        changed = False
        for step, choices in STEPS:
            k = len(scopes(ops)) - 1
            while k >= 0:
                for choice in range(choices):
                    smaller = step(copy.deepcopy(ops), k, choice) if k < len(scopes(ops)) else None
                    if smaller is None:
                        continue
                    drop_dead(smaller)
                    if fails(smaller):
                        ops, changed = smaller, True
                        break
                k -= 1
    return ops


# ---- the command --------------------------------------------------------------------------------------------------------

def feeds_of(ops, known):
    """Data for the inputs: those of the generator, else small numbers."""
    feeds = []
    for op in ops:
        m = re.search(r'name = "([^"]*)"', op.attrs)
        if op.name == 'pd.feed' and m and op.outs[0] in control.SHAPES:
            n = 1
            for d in control.SHAPES[op.outs[0]]:
                n *= d
            feeds.append((m[1], op.outs[0], known.get(m[1], [(7 * i + 3) % 10 % (2 if 'bool' in op.outs[0] else 10) for i in range(n)])))
    return feeds


def main(o):
    o.bounds = o.bounds + ['--max-trip', '100']  # what is left of a loop may have no end
    if o.shrink.isdigit():
        program = control.Program(int(o.shrink))
        text, known = program.text, {name: values for name, _, values in program.feeds}
    else:
        status, text = control.call([o.pdcc, 'opt', '--passes=', o.shrink, '-o', '-'])
        known = {}
        if status:
            sys.exit(text)
    tries = [0]

    def failure(ops):
        """What goes wrong, without names and numbers; None: nothing."""
        tries[0] += 1
        with tempfile.TemporaryDirectory() as tmp:
            case = control.run_batch(o, pathlib.Path(tmp), [(0, module_text(ops), feeds_of(ops, known))])[0]
        return case.why and (case.why, re.sub(r'/\S+|%\S+|\'\w+\'|-?\d+(\.\d+)?(e[+-]\d+)?', '', case.message.split('\n')[0]))

    ops = parse(text)
    want = failure(ops)
    if not want:
        sys.exit('this program does not fail')
    drop_dead(ops)
    small = shrink(ops, lambda ops: failure(ops) == want)
    print('// %s: %s' % want)
    print(module_text(small), end='')
    print('%d tries, %d operations of %d left' % (tries[0], len(scopes(small)), len(scopes(parse(text)))), file=sys.stderr)
    return 0
