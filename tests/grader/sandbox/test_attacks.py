"""The corpus of attacks, each tried through the judge, and as a notebook of a class that is graded.

An attack in `attacks/` is a file that can be handed in as it is. The comments at its top say what
it tries, which layer stops it (`by`), the verdicts that it may end with, and, where it looks for
something, the words that the verdict must hold (`says`; `|` separates alternatives) or must not
(`never`). `most` is what it earns at most, `seconds` how long a call may take. An `.ipy` holds what
only IPython understands, in one cell or several, and is judged as a notebook; it says what it
`answers`, where that cannot be read in it.
"""

import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import nbformat
import pytest
from faults import cut_down
from file_cells import fill_in
from nbformat import NotebookNode

from autograder import cli
from autograder.gradebook.classroom import grade
from autograder.gradebook.rows import Row
from autograder.judge import runner, verdicts
from autograder.judge.judge_file import judge_file
from autograder.notebook import stubs
from autograder.notebook.names import defined_names
from autograder.sandbox.host import ProcessDied, Sandbox, SandboxLost
from autograder.sandbox.isolation import ISOLATIONS
from autograder.sandbox.launcher import WarmProcess, warm_process
from autograder.sandbox.limits import Limits
from autograder.sandbox.walls import LANDLOCK, LAYERS, LIMITS, NAMESPACES, SECCOMP
from autograder.sandbox.watch import family
from autograder.student.course import chapters, exercises_of
from autograder.student.expected import SEED

pytestmark = pytest.mark.needs_torch  # as the course does

HERE = Path(__file__).resolve().parents[2] / "attacks"
FILES = {path.stem: path for path in HERE.iterdir() if path.suffix in (".py", ".ipy")}
ATTACKS = sorted(FILES)
ROOT = HERE.parents[1]
RIGHT = ROOT / "solutions" / "kernel_regression.py"
CANARY = "attack-canary"


def declared(name: str) -> dict[str, str]:
    """What the top of an attack says of it."""
    lines = text_of(name).splitlines()
    pairs = [re.fullmatch(r"# (\w+): (.+)", line) for line in lines]
    return {pair[1]: pair[2] for pair in pairs if pair}


def limits(said: dict[str, str]) -> Limits:
    seconds = float(said.get("seconds", 20))
    small = {"memory_mb": 1024, "tmp_mb": 32, "file_mb": 8, "processes": 20, "restarts": 2}
    return Limits(
        cell_seconds=seconds, probe_seconds=seconds, output_bytes=1 << 20, cpu_seconds=60, **small
    )


def words(result: dict) -> str:
    """All that a result says, as it is printed, with the marks of JSON undone."""
    return json.dumps(result, ensure_ascii=False)


@pytest.fixture(scope="module", autouse=True)
def outside() -> Iterator[list[socket.socket]]:
    """What attacks look for outside: servers that listen, a variable in the environment."""
    os.environ["AUTOGRADER_ATTACK_SECRET"] = "not for students"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for server, address in ((tcp, ("127.0.0.1", 47655)), (unix, "\0autograder-attack")):
            with suppress(OSError):  # somebody listens there already: as good
                server.bind(address)
                server.listen()
        yield [tcp, unix]
    del os.environ["AUTOGRADER_ATTACK_SECRET"]


@pytest.fixture(scope="module")
def warm() -> WarmProcess:
    """The process that forks all sandboxes of this module."""
    with Sandbox() as first:
        first.wait_until_up()
    return warm_process("bwrap")


def nothing_remains(warm: WarmProcess) -> bool:
    """Whether the warm process is alone again, within a moment; bubblewrap's two stand above it."""
    deadline = time.monotonic() + 10
    while len(family(warm.process.pid)) > 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(family(warm.process.pid)) == 3


@pytest.mark.share(16, rest="nightly")  # `grade` judges all of them: see below
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_as_declared(name, warm, tmp_path):
    said, path = declared(name), FILES[name]
    if path.suffix == ".ipy":
        path = hand_in(tmp_path, name, attacked(name), text_of(name))
    result = judge_file(path, [attacked(name)], seed=b"a seed", limits=limits(said))
    ((_, found),) = result["exercises"].items()
    assert found["verdict"] in said["verdict"].split(), words(result)
    assert found["score"] <= float(said.get("most", 0)) < found["points"]
    if "says" in said:
        assert any(text in words(result) for text in said["says"].split("|")), words(result)
    assert said.get("never", "\x1b") not in words(result)
    assert len(words(result)) < 100_000
    assert not warm.gone() and warm_process("bwrap") is warm
    assert not Path("/tmp", CANARY).exists()
    assert nothing_remains(warm)


# --- the same, handed in by a class -----------------------------------------------------------

KNOWN = {exercise.name: slug for slug in chapters() for exercise in exercises_of(slug)}
MEASURED_BY_SMALL_LIMITS = ("disk_bomb", "large_file")  # what they say is of the sizes in `limits`
NEIGHBOURS = {"aaron": "softmax", "mallory": "causal_mask", "zoe": "softmax"}


def text_of(name: str) -> str:
    return FILES[name].read_text(encoding="utf-8")


def attacked(name: str) -> str:
    """The exercise that an attack is an answer to."""
    said = declared(name).get("answers")
    (exercise,) = {said} if said else defined_names(text_of(name)) & KNOWN.keys()
    return exercise


@cache
def chapter(slug: str) -> str:
    """A chapter's notebook as it is released."""
    (path,) = (ROOT / "notebooks").glob(f"??_{slug}/*.ipynb")
    return path.read_text(encoding="utf-8")


def released(exercise: str) -> NotebookNode:
    """An exercise's chapter as it is released, cut down to the imports and this exercise."""
    notebook = nbformat.reads(chapter(KNOWN[exercise]), as_version=4)
    return cut_down(notebook, (exercise, f"check_{exercise}"))


def hand_in(submitted: Path, student: str, exercise: str, source: str) -> Path:
    """Write a student's notebook of an assignment that is this exercise."""
    path = submitted / student / exercise / f"{exercise}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(fill_in(released(exercise), [exercise], source), path)
    return path


def ending(name: str) -> str:
    """The class that an attack is in: those that never come to an end are one of their own."""
    return "endless" if "seconds" in declared(name) else "ending"


SECONDS = {"endless": 3, "ending": 20}  # that a call may take
IN_CLASS = [
    pytest.param(ending(name), name, id=f"{ending(name)}-{name}", marks=pytest.mark.share(0))
    for name in ATTACKS
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Row]]:
    """Grades a class, once; what each attack, and each neighbour, got, by their names."""

    @cache
    def rows_of(group: str) -> dict[str, Row]:
        course = tmp_path_factory.mktemp("attacked")
        submitted = course / "submitted"
        for student, exercise in NEIGHBOURS.items():
            hand_in(submitted, student, exercise, stubs.source(KNOWN[exercise], exercise))
        for name in ATTACKS:
            if ending(name) == group:
                hand_in(submitted, name, attacked(name), text_of(name))
        for path in submitted.glob("*/*"):
            made = course / "release" / path.name / f"{path.name}.ipynb"
            if not made.is_file():
                made.parent.mkdir(parents=True)
                nbformat.write(released(path.name), made)
        seconds = SECONDS[group]
        result = grade(
            submitted, release=course / "release", jobs=2,
            cell_seconds=seconds, probe_seconds=seconds,
        )  # fmt: skip
        assert not result.ignored and not Path("/tmp", CANARY).exists()
        return {row.student: row for row in result.rows}

    return rows_of


@pytest.mark.parametrize(("group", "name"), IN_CLASS)
def test_an_attack_handed_in_ends_as_declared(group, name, graded):
    said, row, exercise = declared(name), graded(group)[name], attacked(name)
    mark, found = row.marks[f"check_{exercise}"], row.verdicts[exercise]
    told = words(asdict(found))
    assert row.status == "graded", row.reason
    assert found.verdict in said["verdict"].split(), told
    assert mark.score == row.score <= float(said.get("most", 0)) < mark.points
    assert mark.by_hand == (found.verdict == "policy")
    if "says" in said and name not in MEASURED_BY_SMALL_LIMITS:
        assert any(text in told for text in said["says"].split("|")), told
    assert said.get("never", "\x1b") not in told


@pytest.mark.parametrize(("student", "exercise"), NEIGHBOURS.items())
@pytest.mark.share(0)
@pytest.mark.parametrize("group", SECONDS)
def test_whoever_is_graded_beside_them_gets_full_marks(group, student, exercise, graded):
    mark = graded(group)[student].marks[f"check_{exercise}"]
    assert mark.score == mark.points > 0 and not mark.by_hand


def test_after_all_of_them_a_right_answer_is_right():
    result = judge_file(RIGHT, exercises=["softmax"], seed=b"a seed")
    assert result["score"] == result["points"] == 3


def test_every_attack_says_what_it_tries():
    assert len(ATTACKS) > 60
    for name in ATTACKS:
        assert {"tries", "by", "layer", "verdict"} <= declared(name).keys(), name
        assert "correct" not in declared(name)["verdict"]


# --- no layer is decoration: what passes when one is off ------------------------------------------

PASSES = {
    "namespaces: processes are seen": ([NAMESPACES], "reads_proc", "found: ['/proc/2'"),
    "namespaces: the warm process's inodes": ([NAMESPACES], "disk_bomb", "files: False"),
    "landlock: what else is mounted": ([LANDLOCK], "looks_around", "seen: ['/', '/etc'"),
    "seccomp: unaccounted memory": ([SECCOMP], "memory_in_nobodys_account", "'memfd', 'a shared"),
    "seccomp: a user namespace": ([SECCOMP], "leaves_its_namespaces", "['own user', 'own mount'"),
    "seccomp: a socket": ([SECCOMP], "abstract_socket", "reached: ['bind']"),
    "limits: a large file": ([LIMITS], "large_file", "written: more"),
    "limits: themselves": ([LIMITS], "raises_its_limits", "got: ['RLIMIT_DATA'"),
}


@pytest.mark.parametrize(("off", "name", "sign"), PASSES.values(), ids=PASSES.keys())
def test_without_a_layer_an_attack_passes(off, name, sign, warm, monkeypatch):
    left = [layer for layer in LAYERS if layer not in off]
    monkeypatch.setattr(runner, "Sandbox", partial(Sandbox, layers=left))
    result = judge_file(HERE / f"{name}.py", seed=b"a seed", limits=limits(declared(name)))
    assert sign in words(result), words(result)
    assert nothing_remains(warm)


def neighbours(layers: list[str]) -> tuple[bool, bool]:
    """Whether one of two workers can leave the other a file, and whether it can kill it."""
    with Sandbox(layers=layers) as one, Sandbox(layers=layers) as other:
        other.execute("import os")
        try:
            one.execute(
                "import os, signal\nopen('/tmp/left', 'w').write('x')\n"
                "for n in range(2, 4000):\n"
                "    try: n == os.getpid() or os.kill(n, signal.SIGKILL)\n"
                "    except OSError: pass\n"
            )
            (told,) = other.execute("print(os.path.exists('/tmp/left'))")
        except (ProcessDied, SandboxLost):  # the neighbour, or the warm process itself
            return True, True
        return "True" in told["text"], False


def test_neighbours_are_kept_apart_by_namespaces_and_by_landlock(warm):
    assert neighbours([*LAYERS]) == (False, False)
    assert neighbours([LANDLOCK, SECCOMP, LIMITS])[0]  # one /tmp for both
    assert not warm.gone()
    assert neighbours([SECCOMP, LIMITS])[1]  # and nobody is safe from anybody's signals
    with Sandbox() as after:
        assert after.execute("print(1)")[0]["text"] == "1\n"  # a new warm process is there


def test_without_bubblewrap_everything_is_found():
    outputs, own = {}, f"autograder-attack-{os.getpid()}"
    for isolation in ISOLATIONS:
        with socket.socket(socket.AF_UNIX) as server, Sandbox(isolation) as worker:
            server.bind(f"\0{own}")
            server.listen()
            found = worker.execute(
                "import os, socket\n"
                f"print('the reference', os.path.exists({str(RIGHT)!r}))\n"
                "def env(n):\n"
                "    try: return b'ATTACK_SECRET' in open(f'/proc/{n}/environ', 'rb').read()\n"
                "    except OSError: return False\n"
                f"print('environment', env({os.getpid()}))\n"
                f"try: socket.socket(socket.AF_UNIX).connect('\\0{own}')\n"
                "except OSError: print('socket False')\n"
                "else: print('socket True')\n"
            )
            outputs[isolation] = "".join(output["text"] for output in found)
    assert outputs["bwrap"] == "the reference False\nenvironment False\nsocket False\n"
    assert "the reference True" in outputs["none"] and "socket True" in outputs["none"]


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the policy off."""
    monkeypatch.setattr(verdicts, "_held_back", lambda verdict, exercise, code: verdict)


POLICY_ALONE = {
    "torchs_own_attention": 4.0,
    "hides_what_it_changed": 3.0,
    "hides_it_by_frames": 3.0,
    "inspectors_patched": 3.0,
}


@pytest.mark.parametrize(("name", "score"), POLICY_ALONE.items())
def test_without_the_policy_these_earn_full_marks(name, score, monkeypatch):
    """What can be forged inside a student's process: see SECURITY.md."""
    unread(monkeypatch)
    result = judge_file(HERE / f"{name}.py", seed=b"a seed", limits=limits(declared(name)))
    assert result["score"] == result["points"] == score


def test_with_the_inputs_of_check_an_answer_that_knows_them_is_right(monkeypatch):
    unread(monkeypatch)
    path = HERE / "notices_that_it_is_graded.py"
    assert judge_file(path, seed=SEED)["score"] >= 1.0  # the aspects that it is written for
    assert judge_file(path, seed=b"fresh")["score"] == 0


# --- what else can be handed to `judge` -----------------------------------------------------------


def test_a_file_name_cannot_speak_to_the_terminal(tmp_path, capsys):
    name = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202ey.py"
    for text in ("def softmax(scores, axis=-1): return scores * 0\n", "x = 1\n"):
        (tmp_path / name).write_text(text)
        with pytest.raises(SystemExit):
            cli.main(["judge", str(tmp_path / name)])
        said = capsys.readouterr()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said.out + said.err)
        assert "owned" in said.out + said.err


def test_a_withheld_score_is_told_and_ends_with_status_1(capsys):
    path = HERE / "torchs_own_attention.py"
    with pytest.raises(SystemExit) as end:
        cli.main(["judge", str(path)])
    said = capsys.readouterr().out
    assert end.value.code == 1 and "withheld" in said and "policy" in said
    with pytest.raises(SystemExit) as end:
        cli.main(["judge", "--json", str(path)])
    found = json.loads(capsys.readouterr().out)["exercises"]["scaled_dot_product_attention"]
    assert end.value.code == 1 and (found["verdict"], found["score"]) == ("policy", 0)
    assert "For a person to look at" in found["aspects"][0]["error"]
    lines = path.read_text(encoding="utf-8").splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if "F.scaled_dot_product_attention" in text)
    assert f"in line {line}, " in found["aspects"][0]["error"]


def test_the_table_in_the_security_page_counts_the_corpus():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|(,]+?)(?: \(.*?\)|, .*?)? \| (\d+) \|", page, re.MULTILINE)
    counted = Counter(declared(name)["layer"] for name in ATTACKS)
    assert {layer.lower(): int(count) for layer, count in rows} == counted
    for name in re.findall(
        r"`([a-z]+_[a-z_]+)`", page.partition("## The layers")[2].split("##")[0]
    ):
        assert name in ATTACKS or name in ("memory_mb", "seed_for", "clean_html"), name
