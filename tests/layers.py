#!/usr/bin/env python3
"""Checks who uses whom, by the table of rooms in docs/rooms.yaml.

    layers.py BUILD [ROOM/NAME.c=OBJECT...]    says what is wrong, one line each; exit status 1 when something is
    layers.py --map                            prints docs/map.md

What an object refers to (nm) and what a file includes must lie in its own room or in one that its room may use; rooms use each other
in no circle; the calls between files of one room make no circle of more than three files. Sources are listed in sources.mk, no folder
has more than 25 C files, and each room has a header ROOM/NAME.h. OBJECT stands for one of a source that is not in the tree.
"""
import collections, fnmatch, pathlib, re, subprocess, sys

SRC = pathlib.Path(__file__).resolve().parent.parent
FLOORS = ('ir', 'lower', 'codegen', 'frontend')
MAX_FILES, MAX_CIRCLE = 25, 3
TOOLS = {'ir/gen', 'codegen/text/embed.c'}  # what the build runs has a main of its own


def read_table():
    import yaml
    table = yaml.safe_load((SRC / 'docs/rooms.yaml').read_text())
    uses = {}
    for room, names in table['rooms'].items():
        uses[room] = set()
        for name in names:
            found = [r for r in table['rooms'] if r == name or (name.endswith('/*') and r.startswith(name[:-1]))]
            if not found:
                sys.exit(f'layers: {room} may use {name}, which is no room')
            uses[room] |= set(found) - {room}
    return uses, table.get('known') or []


def room_of(path):
    return path.rpartition('/')[0]


def sources():
    return sorted(str(p.relative_to(SRC)) for floor in FLOORS for p in (SRC / floor).rglob('*.[ch]'))


def is_tool(path):
    return path in TOOLS or room_of(path) in TOOLS


def symbols(objects):
    """Of each object what it defines for others, and what it wants."""
    out = {str(o): (set(), set()) for o in objects}
    for line in subprocess.run(['nm', '-A', '-g', *out], capture_output=True, text=True, check=True).stdout.splitlines():
        name, _, rest = line.partition(':')
        kind, symbol = rest.split()[-2:]
        out[name][kind == 'U'].add(symbol)
    return out


def circles(nodes, edges):
    """Strongly connected components of more than one node (Tarjan, Depth-First Search and Linear Graph Algorithms, 1972)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(edges.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            component = []
            while not component or component[-1] != v:
                component.append(stack.pop())
                on.discard(component[-1])
            if len(component) > 1:
                out.append(sorted(component))

    for v in nodes:
        if v not in index:
            visit(v)
    return out


def calls(build, extra):
    """(file, file) -> names that the first takes from the second."""
    objects = {f: build / 'obj' / f'{f[:-2]}.o' for f in sources() if f.endswith('.c') and not is_tool(f)}
    objects.update(extra)
    missing = [f for f, o in objects.items() if not o.exists()]
    if missing:
        sys.exit(f'layers: not built: {" ".join(missing)}')
    known = symbols(objects.values())
    found = {f: known[str(o)] for f, o in objects.items()}
    home = {name: f for f, (defined, _) in found.items() for name in defined}
    out = collections.defaultdict(set)
    for f, (_, wanted) in found.items():
        for name in wanted:
            if home.get(name, f) != f:
                out[f, home[name]].add(name)
    return out


def check_uses(uses, edges):
    for (a, b), names in sorted(edges.items()):
        if room_of(a) != room_of(b) and room_of(b) not in uses.get(room_of(a), ()):
            for name in sorted(names):
                yield f'{a} uses {name} of {b}: {room_of(a)} may not use {room_of(b)}'


def check_includes(uses):
    for f in sources():
        if is_tool(f):
            continue
        for n, line in enumerate((SRC / f).read_text().splitlines(), 1):
            m = re.match(r'#include "([^"]+)"', line)
            if not m or not (SRC / m[1]).exists():
                if m and '..' in m[1]:
                    yield f'{f}:{n}: includes are written from the root'
                continue
            room = room_of(m[1])
            if room != room_of(f) and room not in uses.get(room_of(f), ()):
                yield f'{f}:{n}: {room_of(f)} may not include {m[1]}'


def check_tree(uses):
    listed = {w for floor in FLOORS for w in (SRC / floor / 'sources.mk').read_text().split()}
    per_room = collections.Counter()
    for f in sources():
        if not f.endswith('.c'):
            continue
        per_room[room_of(f)] += 1
        if f not in listed and not is_tool(f):
            yield f'{f} is in no sources.mk'
        if room_of(f) not in uses and not is_tool(f):
            yield f'{f} lies in no room of docs/rooms.yaml'
    for pattern in ('tests/*/*.c', 'tests/*.py', 'tests/*/*.py', 'runtime_stub/**/*.c*'):
        for f in SRC.glob(pattern):
            per_room[room_of(str(f.relative_to(SRC)))] += 1
    for room, n in per_room.items():
        if n > MAX_FILES:
            yield f'{room} has {n} source files, more than {MAX_FILES}'
    for room in uses:
        if not header(room).exists():
            yield f'{room} has no header {header(room).relative_to(SRC)}'


def check_circles(uses, edges):
    for c in circles(sorted(uses), uses):
        yield 'rooms in a circle: ' + ' '.join(c)
    within = collections.defaultdict(set)
    for a, b in edges:
        if room_of(a) == room_of(b):
            within[a].add(b)
    for c in circles(sorted(within), within):
        if len(c) > MAX_CIRCLE:
            yield f'{len(c)} files in a circle of calls: ' + ' '.join(c)


def header(room):
    if room == 'runtime_stub':
        return SRC / 'runtime_stub/pdrt.h'
    return SRC / room / (room.rpartition('/')[2] + '.h')


def print_map(uses):
    """A page with a section for each floor: what each room does, and whom it may use."""
    print('# The rooms of the tree\n\nDrawn by `make docs` from `docs/rooms.yaml`, which `tests/layers.py` checks against the objects, and '
          'from the first lines\nof the rooms\' headers. A room may use those that stand behind the arrow, and nobody else.')
    for floor in FLOORS:
        print(f'\n## {floor}/\n')
        for room in (r for r in uses if r.split('/')[0] == floor):
            text = []
            if not header(room).exists():
                continue
            for line in header(room).read_text().splitlines():
                if not line.startswith('// '):
                    break
                text.append(line[3:])
            n = len(list((SRC / room).glob('*.c')))
            used = ', '.join(f'`{u}`' for u in uses if u in uses[room])
            print(f'**`{room}`** ({n} file{"s" * (n != 1)}) → {used or "nobody"}\n')
            print('\n'.join(text) + '\n')


def main():
    uses, known = read_table()
    if sys.argv[1:] == ['--map']:
        print_map(uses)
        return 0
    build, extra = pathlib.Path(sys.argv[1]), {}
    for pair in sys.argv[2:]:
        source, eq, obj = pair.partition('=')
        if eq:
            extra[source] = pathlib.Path(obj)
    edges = calls(build, extra)
    found = [*check_tree(uses), *check_includes(uses), *check_uses(uses, edges), *check_circles(uses, edges)]
    wrong = [w for w in found if not any(fnmatch.fnmatchcase(w, k) for k in known)]
    wrong += [f'docs/rooms.yaml: no longer so, delete it: {k}' for k in known if not fnmatch.filter(found, k)]
    if wrong:
        print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
