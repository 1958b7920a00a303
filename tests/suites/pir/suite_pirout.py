"""`-o model.json`: what a recorded case is written as gives the recorded outputs when pdcc reads it again, writing it again changes
nothing, and it is the same every time. Whether Paddle 3 agrees is recorded by hand (tests/record_pir_out.py)."""
import json, pathlib, shutil, sys, tempfile

from pdcc_tests import SRC, run

SLOW = False
CASES = SRC / 'tests/corpus/cases'
# So many of the cases have a form in Paddle 3: no LoD.
WRITTEN = 246
# So many are byte for byte the same when what was written is read and written again. Not so what was written as what it means, or
# has sizes that a run finds; it must give the recorded outputs again. Nor have gradients whose definitions read parameters: that
# they stop gradients is said by an assign when they are read.
SAME = 170
# What is written gives something else than was recorded: NaN in max and min, and complex quotients of infinities, as in Paddle 3; an
# input that has not the rank that the program declares.
OTHER = {'value-max-nan-long', 'value-max-nan-rows', 'value-min-nan-columns', 'complex-special', 'feed-other-rank'}
# Results that were not read before bring LoD along when they are read again.
ONCE = {'auto_scan_multiclass_nms-0', 'auto_scan_multiclass_nms-1', 'seq-ctc-dense'}


def write(t, model, out, *flags):
    return run([t.pdcc, model, '-o', out, *flags])


def suite(t):
    written, same = [], 0
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for case in sorted(p.parent for p in CASES.glob('*/case.yaml')):
            model = next(p for p in (case / 'model.pdmodel', case / 'model.json') if p.exists())
            to, twice = tmp / 'cases' / case.name, tmp / 'cases' / f'{case.name}.again'
            to.mkdir(parents=True)
            first = write(t, model, to / 'model.json')
            if first.returncode:
                yield (f'{case.name} is refused', first.returncode == 1 and 'Paddle 3' in first.stdout and not any(to.iterdir()),
                       first.stdout)
                shutil.rmtree(to)
                continue
            written.append(case.name)
            once = (to / 'model.json').read_bytes()
            json.loads(once)
            shutil.copy(case / 'case.yaml', to)
            (to / 'data').symlink_to(case / 'data')
            again = tmp / 'again.json'
            ok = not write(t, model, again).returncode and again.read_bytes() == once
            yield f'{case.name}: the same every time', ok, ''
            second = write(t, to / 'model.json', again)
            yield f'{case.name}: written again', (second.returncode == 0) == (case.name not in ONCE), second.stdout
            if case.name in OTHER:
                shutil.rmtree(to)
            elif second.returncode == 0 and again.read_bytes() == once:
                same += 1
            elif second.returncode == 0:
                shutil.copytree(to, twice, symlinks=True)
                write(t, to / 'model.json', twice / 'model.json')
        yield f'{len(written)} cases have a form in Paddle 3', len(written) >= WRITTEN, 'they were more'
        yield f'{same} are the same when written again', same >= SAME, 'they were more'
        p = run([sys.executable, SRC / 'tests/corpus/score.py', '--pdcc', t.pdcc, '--target', 'interp', '--jobs', '2', tmp / 'cases'])
        yield 'they give what was recorded', p.returncode == 0, p.stdout
