"""Runs a student's cells and probes what they define; forked by `warm`, once per submission.

TRUST BOUNDARY. This process runs hostile code, and everything in it may be under that code's
control: nothing it sends is believed, and nothing worth stealing is ever sent to it. It is given
cells and arguments; it returns outputs and values. It imports only the student's side of
`autograder`.

It speaks over two pipes: a message is its length in 8 bytes and then its bytes. A request of the
judge, which is trusted, is pickled; a reply, which is not, is written by `values.encode`, one for
each request, with its number, and for a probe one for each of its runs. All `walls` stand before
`serve` is called.
"""

import base64
import io
import json
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

Request = dict[str, Any]  # an "op", and what it needs: see `host`
FRAME = struct.Struct("<Q")
_WRITES_PAST_LIMIT = 1_000_000  # after these, a cell that floods its output is stopped
_BYTES_PAST_LIMIT = 128 << 20
_TRACEBACK = 6000
_IDLE = frozenset(  # magics that run programs: there are none here, and no network
    ("pip", "conda", "mamba", "micromamba", "uv", "system", "sx", "sc", "!", "script", "bash", "sh")
    + ("cmd", "shell", "perl", "ruby", "python2", "pypy", "javascript", "js")
)
_SETTING_UP = frozenset(("matplotlib", "load_ext", "reload_ext", "autoreload", "pylab", "gui"))


class OutputLimit(RuntimeError):
    """A cell kept printing long after its output limit was reached."""

    def _render_traceback_(self) -> list[str]:  # IPython looks for this name
        return [f"{type(self).__name__}: {self}"]


class Recorder:
    """Collects a cell's outputs in nbformat's form, up to a limit in bytes."""

    def __init__(self, limit: int):
        self.limit = limit
        self.begin()

    def begin(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.room = self.limit
        self.writes = self.lost = 0

    def stream(self, name: str, text: str) -> None:
        size = len(text)
        if size > self.room:
            self.writes, self.lost = self.writes + 1, self.lost + size
            if self.writes > _WRITES_PAST_LIMIT or self.lost > _BYTES_PAST_LIMIT:
                self.writes = self.lost = 0
                raise OutputLimit("this cell prints without end")
            text, size = text[: self.room], self.room
        if not text:
            return
        self.room -= size
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"].append(text)
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": [text]})

    def display(self, kind: str, data: Mapping[str, object], count: int | None = None) -> None:
        shown = {str(mime): _text(value) for mime, value in data.items()}
        size = sum(map(len, shown.values()))
        if size > self.room:
            return self.stream("stderr", "[an output was left out: too large]\n")
        self.room -= size
        output = {"output_type": kind, "data": shown, "metadata": {}}
        self.outputs.append(
            output | ({"execution_count": count} if kind == "execute_result" else {})
        )
        return None

    def error(self, name: str, value: str, lines: list[str]) -> None:
        text = "\n".join(lines)
        if len(text) > _TRACEBACK:
            text = f"{text[: _TRACEBACK // 3]}\n[…]\n{text[-_TRACEBACK * 2 // 3 :]}"
        error = {"output_type": "error", "ename": name[:200], "evalue": value[:2000]}
        self.outputs.append(error | {"traceback": text.splitlines()})

    def finished(self) -> bytes:
        """The outputs as JSON."""
        if self.lost:
            lost = f"\n[{self.lost} more characters were printed and left out]\n"
            self.outputs.append({"output_type": "stream", "name": "stderr", "text": [lost]})
        for output in self.outputs:
            if output["output_type"] == "stream":
                output["text"] = "".join(output["text"])
        return json.dumps(self.outputs, ensure_ascii=False).encode("utf-8", "replace")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, str) else json.dumps(value, default=str)


class Stream(io.TextIOBase):
    """A replacement for `sys.stdout` and `sys.stderr`."""

    def __init__(self, recorder: Recorder, name: str):
        self.recorder, self.name = recorder, name

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.recorder.stream(self.name, text)
        return len(text)


def make_shell(recorder: Recorder) -> "InteractiveShell":
    """IPython without a kernel: no sockets, no history, no threads; outputs go to `recorder`."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.error import UsageError
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.text import LSString, SList
    from traitlets import Type
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, *_: object, **__: object) -> None:
            recorder.display("display_data", data)

        def clear_output(self, wait: bool = False) -> None:
            recorder.outputs.clear()

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None: ...

        def write_format_data(self, format_dict, md_dict=None) -> None:
            recorder.display("execute_result", format_dict, self.prompt_count)

        def finish_displayhook(self) -> None: ...

    def idle(what: str) -> None:
        recorder.stream("stderr", f"[{what} does nothing while this is graded]\n")

    class Shell(InteractiveShell):
        display_pub_class = Type(Publisher)
        displayhook_class = Type(Hook)

        def enable_gui(self, gui=None) -> None: ...

        def system(self, cmd: str) -> None:
            idle(f"!{cmd[:60]}")
            self.user_ns["_exit_code"] = 0

        system_piped = system_raw = system

        def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> object:
            self.system(cmd)
            return SList([]) if split else LSString("")

        def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
            if magic_name in _IDLE or self.find_line_magic(magic_name) is None:
                return idle(f"%{magic_name}")
            try:
                return super().run_line_magic(magic_name, line, _stack_depth + 1)
            except UsageError as error:
                return idle(f"%{magic_name} ({error})")
            except Exception as error:
                if magic_name not in _SETTING_UP:
                    raise
                return idle(f"%{magic_name} ({type(error).__name__})")

        def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
            if magic_name in _IDLE:
                return idle(f"%%{magic_name}")
            if self.find_cell_magic(magic_name) is not None:
                return super().run_cell_magic(magic_name, line, cell)
            idle(f"%%{magic_name}")  # most magics that one can install run the cell
            source = self.transform_cell(cell)
            exec(self.compile(source, self.compile.cache(source), "exec"), self.user_ns)
            return None

        def ask_exit(self) -> None:
            raise SystemExit("exit() ends a notebook; here it ends the cell")

        def _showtraceback(self, etype, evalue, stb) -> None:
            try:
                value = str(evalue)
            except Exception:  # noqa: BLE001  (an exception whose own __str__ fails)
                value = ""
            recorder.error(getattr(etype, "__name__", str(etype)), value, list(stb))

    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Plain"
    return Shell.instance(config=config)


class Session:
    """The shell, and the requests that it answers."""

    def __init__(self, output_bytes: int):
        from autograder.student.engine.block_access import BlockPackage
        from autograder.student.engine.observe import Observer, accompany_threads
        from autograder.student.engine.probe import materialise, preserve_generators, probe_within
        from autograder.student.engine.records import record_from, record_tree
        from autograder.student.engine.settings import as_fresh
        from autograder.student.engine.simulated_device import warm_up
        from autograder.student.engine.state import GlobalState
        from autograder.student.engine.stub import is_unwritten
        from autograder.student.engine.values import MANY, MAX_BYTES, Recipe, encode

        def make(answer: object, run: Any, device: str, watch: list[str]) -> dict[str, object]:
            return record_tree(probe_within(answer, run, device, watch))

        def unreadable(error: BaseException) -> dict[str, object]:
            raised = [[type(error).__name__], "its result cannot be read", "", "call"]
            empty: dict[str, object] = {"gradients": {}, "changed": {}, "side_effects": []}
            return record_tree(record_from({"values": (), "raised": raised, **empty}))

        if "torch" in sys.modules:
            with Observer(("torch.*",)).watching():  # so that first-use costs are paid once for all
                import_module("torch").zeros(1)
            warm_up()
        accompany_threads()
        # Taken now, before an answer can replace their modules.
        self.make, self.unreadable, self.is_unwritten = make, unreadable, is_unwritten
        self.preserve_generators, self.room = preserve_generators, MAX_BYTES
        self.encode, self.encode_results = encode, partial(encode, many=MANY)
        with as_fresh():  # both take their readers of torch, which was imported after them
            GlobalState()
        self.block = lambda name, device: materialise(Recipe(name), device)
        self.make_blocks = BlockPackage
        self.blocks: BlockPackage | None = None
        self.probed: dict[str, object] = {}
        self.recorder = Recorder(output_bytes)
        self.shell = make_shell(self.recorder)
        self.streams = Stream(self.recorder, "stdout"), Stream(self.recorder, "stderr")

    def answers(self, request: Request) -> Iterator[bytes]:
        """Carry out a request; yield its replies. Lets `MemoryError` and worse through."""
        self.recorder.begin()
        sys.stdout, sys.stderr = self.streams
        number = {"id": request["id"]}
        if request["op"] == "execute":
            yield self.encode(number | {"outputs": self.execute(request)})
        elif request["op"] == "point":
            yield self.encode(number | {"pointer": self.point(request)})
        elif request["op"] == "blocks":
            yield self.encode(number | {"done": self.hand_out(request)})
        else:
            room = self.room  # of all records together
            for record in self.probe(request):
                try:
                    reply = self.encode_results(number | {"record": record}, room=room)
                except MemoryError:
                    raise
                except BaseException as error:  # noqa: BLE001  (its values cannot be sent)
                    reply = self.encode_results(number | {"record": self.unreadable(error)})
                room -= len(reply)
                yield reply

    def execute(self, request: Request) -> object:
        """Run a cell; return its outputs, packed."""
        import numpy as np

        name, shell = request["module"], self.shell
        shell.user_ns["__name__"] = name
        sys.modules[name] = shell.user_module
        result = shell.run_cell(request["source"], store_history=True)
        error = result.error_before_exec or result.error_in_exec
        shown = any(output["output_type"] == "error" for output in self.recorder.outputs)
        if error is not None and not shown:
            self.recorder.error(type(error).__name__, "", [type(error).__name__])
        return np.frombuffer(self.recorder.finished(), np.uint8)

    def hand_out(self, request: Request) -> bool:
        """Define some of the course's blocks; the first such request names all there are."""
        if self.blocks is None:
            self.blocks = self.make_blocks(request["names"])
        self.blocks.hand_out(request["pieces"])
        return True

    def probe(self, request: Request) -> Iterator[dict[str, object] | None]:
        """Make an answer's runs, one for each record that is read; a lone None if it is missing."""
        if request["name"] not in self.shell.user_ns:
            yield None
            return
        answer, device = self.shell.user_ns[request["name"]], request["device"]
        self.probed[request["name"]] = answer
        left, record = list(request["runs"]), dict[str, object]()
        try:
            with self.preserve_generators(), self.standing_in(request["instead"], device):
                while left:
                    try:
                        if not self.is_unwritten(answer, record):  # or else all calls end so
                            record = self.make(answer, left[0], device, request["watch"])
                    except MemoryError:
                        raise
                    except BaseException as error:  # noqa: BLE001  (its result cannot be read)
                        record = self.unreadable(error)
                    del left[0]
                    yield record
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001  (the generators cannot be restored)
            yield from [self.unreadable(error) for _ in left]

    def point(self, request: Request) -> str | None:
        """Where an answer goes astray: a hint, made by the student's side of the course alone."""
        from autograder.student import pointing

        name, device = request["name"], request["device"]
        answer = self.probed.get(name, self.shell.user_ns.get(name))
        try:
            pointing.SECONDS = request["budget"]
            return None if answer is None else pointing.pointer_on(answer, name, device)
        except Exception:  # noqa: BLE001  (whatever the answer has done to what is used here)
            return None

    @contextmanager
    def standing_in(self, instead: Mapping[str, str], device: str) -> Iterator[None]:
        """Bind some of the student's names, and aliases, to the course's blocks for a while."""
        names, missing = self.shell.user_ns, object()
        blocks = {name: self.block(of, device) for name, of in instead.items()}
        for name in instead.keys() & names.keys():
            own = names[name]
            blocks |= {other: blocks[name] for other in list(names) if names[other] is own}
        before = {name: names.get(name, missing) for name in blocks}
        names.update(blocks)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is missing:
                    names.pop(name, None)
                else:
                    names[name] = value


def say(replies: int, tree: Mapping[str, object]) -> None:
    """Send one message."""
    from autograder.student.engine.values import encode

    write(replies, encode(tree))


def write(replies: int, message: bytes) -> None:
    view = memoryview(FRAME.pack(len(message)) + message)
    while view:
        view = view[os.write(replies, view) :]


def serve(session: Session, requests: int, replies: int, hello: Mapping[str, object]) -> None:
    """Say `hello`, then answer requests until the judge closes the pipe. Does not return."""
    from pickle import loads

    from autograder.student.engine.values import encode

    own = os.getpid()

    def read(size: int) -> bytes:
        parts = []
        while size:
            part = os.read(requests, min(size, 1 << 20))
            if not part:
                os._exit(0)  # the judge has closed the pipe
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    say(replies, {"id": 0, **hello})
    while True:
        request = loads(read(FRAME.unpack(read(FRAME.size))[0]))
        # Encoded now, while there is memory for it:
        memory_reply = encode({"id": request["id"], "out_of_memory": True})
        try:
            for reply in session.answers(request):
                if os.getpid() != own:
                    os._exit(0)  # a child that the student's code forked and did not end
                write(replies, reply)
        except MemoryError:
            write(replies, memory_reply)
            os._exit(1)
