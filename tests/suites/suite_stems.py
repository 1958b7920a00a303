"""What Paddle wraps around conditions and loops is gone after the clean-up passes, in every program of the shared corpus.

A stem is: select_input, select_output or assign; a truth cast to a number and back; a negation of a negation, or one that
nothing but branches reads. Casts and negations that a program asks for by itself are none.
"""
import pathlib, re, sys, tempfile

from pdcc_tests import SHARED, Skip, run

SLOW = True
FOLDERS = ['cf', 'paddle-ut', 'p2o', 'models', 'real']
CONTROL = [b'while', b'conditional_block', b'select_input', b'recurrent']
LINE = re.compile(r'(?:(%.*?) = )?([a-z_]+\.\w+)\((.*?)\).*? : \((.*?)\) -> \((.*)\)')


def stems(text):
    """The lines of IR text that are stems."""
    ops, users, found = {}, {}, []
    for line in text.splitlines():
        m = LINE.match(re.sub(r' loc\(.*?\)(?= |$)', '', re.sub(r'(%[\w#.]+|%"[^"]*")![sp]+', r'\1', line.strip())))
        if not m:
            continue
        results, name, args, ins, _ = m.groups()
        args = [a.strip() for a in args.split(',')]
        for r in (results or '').split(', '):
            ops[r] = (name, args, ins, line.strip())
        for i, a in enumerate(args):
            users.setdefault(a, set()).add((name, i))
    for result, (name, args, ins, line) in ops.items():
        before = ops.get(args[0], ('', [], '', ''))
        if name in ('pd.select_input', 'pd.select_output', 'pd.assign'):
            found.append(line)
        elif name == 'pd.cast' and 'dtype = bool' in line and before[0] == 'pd.cast' and 'bool' in before[2]:
            found.append(line)
        elif name == 'pd.logical_not' and (before[0] == name or all(u == ('pd.if', 0) for u in users.get(result, [('', 0)]))):
            found.append(line)
    return found


def suite(t):
    if not SHARED.exists():
        raise Skip('no ../shared')
    sys.path.insert(0, str(SHARED / 'tools'))
    from seeded_params import write_params_from_recipe
    for model in sorted(m for folder in FOLDERS for m in (SHARED / 'corpus' / folder).glob('*/model.pdmodel')):
        data = model.read_bytes()
        if not any(word in data for word in CONTROL) or b'_grad' in data:
            continue
        with tempfile.TemporaryDirectory() as tmp:
            cmd = [t.pdcc, 'opt', '--passes=clean', model, '-o', '-']
            if model.with_name('params.yaml').exists():
                cmd += ['--params', pathlib.Path(tmp) / 'made.pdiparams']
                write_params_from_recipe(str(model.with_name('params.yaml')), str(cmd[-1]))
            p = run(cmd)
        if p.returncode == 0: # what cannot be translated is not for this suite
            found = stems(p.stdout)
            yield f'{model.parent.parent.name}/{model.parent.name}', not found, '\n'.join(found)
