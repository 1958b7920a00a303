#!/usr/bin/env python3
"""README.md's figures of speed, from those that `make bench-all` leaves in docs/performance.md: `make docs` writes them, the suite docs
looks whether they are these.

    speed.py
"""
import pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
README, PAGE = ROOT / 'README.md', ROOT / 'docs/performance.md'
BEGIN, END = '<!-- speed: begin, written by `make docs` from docs/performance.md -->', '<!-- speed: end -->'
# Of each kind one; and all that are slower than the best of the others.
SHOWN = {'mobilenet_v1': 'MobileNetV1', 'mobilenet_v3_small': 'MobileNetV3-small', 'swin_tiny_w48': 'Swin-T', 'ppocrv4_det': 'PP-OCRv4 detection',
         'ppocrv4_rec': 'PP-OCRv4 recognition', 'lenet': 'LeNet', 'gpt2_greedy_kvcache': 'small GPT-2, greedy decoding',
         'lstm_forecaster_while': 'LSTM in a `while` loop'}
SLOW = {'resnet50': 'ResNet50', 'bert_base_v2000': 'BERT base', 'deeplabv3p_r50': 'DeepLabv3+, ResNet50'}


def time(ms):
    return f'{ms:.3g} ms' if ms >= 1 else f'{ms * 1000:.3g} us'


def section(page):
    """What stands between the marks in README.md."""
    table = [[c.strip() for c in l.split('|')[1:-1]] for l in page.split('<!-- bench-all: begin -->')[1].split('<!-- bench-all')[0].splitlines()
             if l.startswith('| ')]
    head, rows = table[0], table[1:]
    names = {**SHOWN, **SLOW}
    shown = [r for r in rows if r[0] in names or float(r[-1]) > 1]
    lines = [BEGIN, f'| model | pdcc | {" | ".join(head[2:])} |', '|---' * len(head) + '|']
    lines += [f'| {names.get(r[0], r[0])} | {time(float(r[1]))} | ' + ' | '.join(r[2:]) + ' |' for r in shown]
    said = [next(l for l in page.splitlines() if l.startswith(begin)) for begin in ('Geometric mean of pdcc', 'Made by `make bench-all`')]
    return '\n'.join([*lines, '', *said, END])


def written(readme, page):
    return readme.split(BEGIN)[0] + section(page) + readme.split(END)[1]


if __name__ == '__main__':
    README.write_text(written(README.read_text(), PAGE.read_text()))
    sys.exit(0)
