#!/usr/bin/env python3
"""Writes docs/control-flow.md: page.md.in, with the forms of its programs as pdcc prints them.

    generate.py PDCC        the page, on standard output

A line `@FORM PROGRAM` in the page becomes what pdcc makes of PROGRAM.txt (a description for tests/mkmodel.py).
"""
import pathlib, re, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE.parent.parent
COMMANDS = {'legacy': ['MODEL', '--emit=legacy'], 'ir': ['MODEL', '--emit=ir'], 'cfg': ['MODEL', '--emit=cfg'],
            'clean': ['opt', '--passes=clean', 'MODEL'], 'c': ['MODEL', '--emit=c']}


def form(pdcc, kind, program):
    with tempfile.TemporaryDirectory() as tmp:
        model = pathlib.Path(tmp) / (program + '.pdmodel')
        subprocess.run([sys.executable, SRC / 'tests/mkmodel.py', HERE / (program + '.txt'), model], check=True)
        command = [str(model) if a == 'MODEL' else a for a in COMMANDS[kind]]
        text = subprocess.run([pdcc, *command, '-o', '-'], check=True, stdout=subprocess.PIPE, text=True).stdout
    if kind == 'c':
        kernels = re.findall(r'^static \w+ \w*compute_\w+\(.*?^\}\n', text, re.M | re.S)
        body = re.search(r'^pd_status model_run\(.*?^\}\n', text, re.M | re.S)
        return '```c\n%s```\n' % '\n'.join([*kernels, body[0]])
    return '```\n%s```\n' % re.sub(r' loc\((?:[^()"]|"[^"]*")*\)', '', text)


def main():
    for line in (HERE / 'page.md.in').read_text().splitlines():
        m = re.fullmatch(r'@(\w+) (\S+)', line)
        print(form(sys.argv[1], *m.groups()) if m else line, end='' if m else '\n')


if __name__ == '__main__':
    main()
