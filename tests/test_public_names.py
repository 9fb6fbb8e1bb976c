# SPDX-License-Identifier: Apache-2.0
"""Every public name is there whenever it is asked for, also those whose modules are imported only then."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import pathlib
import pickle
import pkgutil
import typing

import headrace as hr
import pytest
from support import run_python

NAMES = sorted([*hr.__all__, "bytes", "json", "map", "open"])


def said(code: str, *args: str) -> str:
    run = run_python(code, *args)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_every_public_name_is_there() -> None:
    assert said(f"import headrace as hr; print([n for n in {NAMES} if not hasattr(hr, n)])") == "[]"


def test_a_star_import_gives_all_of_it_and_hides_nothing_of_python() -> None:
    names = said("names = {}; exec('from headrace import *', names); print(sorted(names.keys() - {'__builtins__'}))")
    assert ast.literal_eval(names) == sorted(hr.__all__)
    assert set(hr.__all__) & set(dir(builtins)) == set()


def test_names_that_are_not_there_are_an_error() -> None:
    assert not hasattr(hr, "nonsense")
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'nonsense'"):
        hr.nonsense  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nonsense' from 'headrace'"):
        from headrace import nonsense  # noqa: F401


def test_dir_and_help_know_all_names() -> None:
    first, *rest = said("import headrace as hr; print(dir(hr)); help(hr)").splitlines()
    assert set(NAMES) <= set(ast.literal_eval(first))
    shown = "\n".join(rest)
    assert all(name in shown for name in hr.__all__)


def test_type_checkers_see_the_names_that_are_imported_when_used() -> None:
    tree = ast.parse(pathlib.Path(hr.__file__).read_text(encoding="utf-8"))
    (block,) = (n for n in tree.body if isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == "TYPE_CHECKING")
    imports = [n for n in block.body if isinstance(n, ast.ImportFrom)]
    assert {(a.asname or a.name, n.module) for n in imports for a in n.names} == set(hr._LAZY.items())


def test_no_name_that_is_imported_when_used_is_a_module() -> None:
    """Importing the module would put it in the name's place."""
    modules = {m.name for m in pkgutil.iter_modules(hr.__path__)}
    assert modules & set(hr._LAZY) == set()


@pytest.mark.parametrize("name", sorted({m.name for m in pkgutil.iter_modules(hr.__path__)} & set(NAMES)))
def test_a_name_that_is_also_a_module_stays_what_it_is(name: str) -> None:
    assert said(f"import headrace.{name}, headrace as hr; print(type(hr.{name}).__name__)") == "function"


def test_no_module_is_imported_before_its_name_is_used() -> None:
    modules = [f"headrace.{module}" for module in hr._LAZY.values()]
    assert said(f"import sys, headrace; print([m for m in {modules} if m in sys.modules])") == "[]"


def test_annotations_of_public_names_can_be_resolved() -> None:
    for name in NAMES:
        value = getattr(hr, name)
        for function in [value] if inspect.isfunction(value) else vars(value).values() if inspect.isclass(value) else []:
            if inspect.isfunction(function):
                typing.get_type_hints(function)


def test_threads_that_use_a_name_first_get_the_same_thing() -> None:
    code = """
import threading
import headrace as hr
for name in hr._LAZY:
    found, start = [], threading.Barrier(8)
    def ask(name=name, found=found, start=start):
        start.wait()
        found.append(getattr(hr, name))
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert len(found) == 8 and all(f is found[0] for f in found), name
print("alike")
"""
    assert said(code) == "alike"


def test_threads_that_use_all_names_at_once_find_them() -> None:
    code = """
import concurrent.futures, threading
import headrace as hr
start = threading.Barrier(len(hr._LAZY))
def ask(name):
    start.wait()
    return getattr(hr, name)
with concurrent.futures.ThreadPoolExecutor(len(hr._LAZY)) as pool:
    found = list(pool.map(ask, hr._LAZY))
print(all(a is getattr(hr, name) for a, name in zip(found, hr._LAZY)))
"""
    assert said(code) == "True"


def test_pickles_are_read_by_a_process_that_has_only_imported_headrace(tmp_path: pathlib.Path) -> None:
    given = [hr.cache(tmp_path, bytes="1GB"), hr.mixup(classes=5), hr.Extent(1, 2), hr.image("jpg"), hr.pack, hr.tokenize]
    (tmp_path / "pickle").write_bytes(pickle.dumps(given))
    code = "import pickle, sys, headrace; print([repr(v) for v in pickle.load(open(sys.argv[1], 'rb'))[:4]])"
    assert ast.literal_eval(said(code, str(tmp_path / "pickle"))) == [repr(v) for v in given[:4]]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_finds_names_that_its_parent_has_not_used(method: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""
import json, multiprocessing, sys
import headrace as hr

def found(queue):
    queue.put([n for n in {NAMES} if hasattr(hr, n)])

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    queue = context.Queue()
    child = context.Process(target=found, args=(queue,))
    child.start()
    print(json.dumps(queue.get(timeout=60)))
    child.join()
""")
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    assert json.loads(said(code, str(script)).splitlines()[-1]) == NAMES


def test_a_notice_of_another_thread_does_not_become_the_main_thread() -> None:
    """threading takes the thread that imports it first for the main one: it is imported with headrace."""
    code = """
import _thread, sys, time
import headrace as hr
from headrace import messages
assert "threading" in sys.modules and "logging" not in sys.modules
done = _thread.allocate_lock()
done.acquire()
def notice():
    messages.tell_once("a notice")
    done.release()
_thread.start_new_thread(notice, ())
done.acquire()
import threading
print(threading.main_thread() is threading.current_thread())
"""
    assert said(code) == "True"
