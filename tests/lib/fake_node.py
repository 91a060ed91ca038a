#!/usr/bin/env python3
"""A host that greets and answers as it is told: fake_node.py VERSION [ANSWERS]

ANSWERS is a JSON object with the answer to each op; of another one the host says that it failed. The clock of the op
"time" is 100 s late. VERSION is that of the Causeway that it says it is; it counts for one of another protocol if it
is not "same"."""
import json
import os
import re
import struct
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def constant(name, file):
    text = open(os.path.join(ROOT, "dispatcher", "wire", file)).read()
    return re.search(r"#define %s +\"?([^\"\s]+)" % name, text).group(1)


MAGIC = constant("GREETING_MAGIC", "greeting.h").encode().decode("unicode_escape").encode()
PROTOCOL = int(constant("GREETING_PROTOCOL", "greeting.h").rstrip("u"))
HELLO = 3


def say(*parts):
    sys.stdout.buffer.write(b"".join(parts))
    sys.stdout.buffer.flush()


def take(size):
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit()
    return data


def text(value):
    return struct.pack("<H", len(value)) + value.encode()


def greet(version):
    length, _ = struct.unpack("<II", take(8))
    opened = take(length)
    if version == "same":
        size = struct.unpack("<H", opened[4:6])[0]
        body = struct.pack("<I", PROTOCOL) + opened[4:6 + size] + text("") + text("fake")
        body += struct.pack("<IIIQ", os.getpid(), 1, 0, 1) + text("") * 3
    else:
        body = struct.pack("<I", PROTOCOL + 1) + text(version)
    say(MAGIC, struct.pack("<II", len(body), HELLO), body)


def answer_all(answers):
    received, came = 0, b""
    while True:
        size, magic, _ = struct.unpack("<IIQ", take(16))
        came += take(size)
        received += size
        while len(came) >= 12 and len(came) >= 12 + struct.unpack("<I", came[:4])[0]:
            length, asked = struct.unpack("<II", came[:8])
            op = json.loads(came[12:12 + length])["op"]
            came = came[12 + length:]
            answer = answers.get(op, {"failed": "no"})
            if op == "time":
                answer = {"ns": time.time_ns() - 100 * 10**9}
            body = json.dumps(answer).encode()
            say(struct.pack("<IIQ", 12 + len(body), magic, received), struct.pack("<III", len(body), asked + 1, 0), body)


greet(sys.argv[1])
answer_all(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
