# tries: makes every statement's outputs dear to read: millions of lists that nobody asked for
# by: limits (the outputs of all cells together)
# layer: values
# verdict: wrong

import sys

FORGED = b'[{"output_type": "stream", "name": "stdout", "text": "", "more": ['
FORGED += b"[]," * 1_000_000 + b"[]]}]"
sys.stdout.recorder.finished = lambda: FORGED


def softmax(scores, axis=-1):
    return scores * 0


x0 = 0
x1 = 1
x2 = 2
x3 = 3
x4 = 4
x5 = 5
x6 = 6
x7 = 7
x8 = 8
x9 = 9
x10 = 10
x11 = 11
x12 = 12
x13 = 13
x14 = 14
x15 = 15
x16 = 16
x17 = 17
x18 = 18
x19 = 19
x20 = 20
x21 = 21
x22 = 22
x23 = 23
x24 = 24
x25 = 25
x26 = 26
x27 = 27
x28 = 28
x29 = 29
x30 = 30
x31 = 31
x32 = 32
x33 = 33
x34 = 34
x35 = 35
x36 = 36
x37 = 37
x38 = 38
x39 = 39
x40 = 40
x41 = 41
x42 = 42
x43 = 43
x44 = 44
x45 = 45
x46 = 46
x47 = 47
x48 = 48
x49 = 49
x50 = 50
x51 = 51
x52 = 52
x53 = 53
x54 = 54
x55 = 55
x56 = 56
x57 = 57
x58 = 58
x59 = 59
