"""What the course uses of other packages is there: names, arguments, overridden methods, attributes and keys.

A package that moves on should fail here, in one sentence, and not in the middle of a training run. What is used is read from the
course's own code, so no list goes stale: `Reader` walks imports, calls, attributes and classes and compares them with what is
installed. It takes types from the packages' annotations and, where these are silent, from the tables below; an entry that
nothing needs any more fails a test, too.
"""

import ast
import contextlib
import functools
import importlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

import helpers.browser.models  # noqa: F401  (OpenEnv takes a tenth of the time where this comes first)
from helpers.episodes.ledger import Ledger
from helpers.policy.vllm_engine import engine_settings
from helpers.settings.machine import vllm_problem
from helpers.settings.paths import ROOT

UNCHECKED = {"torch", "numpy"}  # mostly compiled, and so without signatures
NAMES = {  # what a variable of this name is
    "trainer": "trl.GRPOTrainer",
    "tokenizer": "transformers.PreTrainedTokenizerFast",
    "model": "transformers.LlamaForCausalLM",
}
ATTRIBUTES = {  # what an attribute is
    "TransformersGenerator.model": "transformers.LlamaForCausalLM",
    "VLLMGenerator.llm": "vllm.LLM",
    "GRPOTrainer.vllm_generation": "trl.generation.vllm_generation.VLLMGeneration",
    "GRPOTrainer.accelerator": "accelerate.Accelerator",
    "GRPOTrainer.state": "transformers.TrainerState",
    "VLLMGeneration.llm": "vllm.LLM",
    "LLM.llm_engine": "vllm.v1.engine.llm_engine.LLMEngine",
    "LLMEngine.model_executor": "vllm.v1.executor.uniproc_executor.UniProcExecutor",
    "UniProcExecutor.driver_worker": "vllm.v1.worker.cpu_worker.CPUWorker",
    "CPUWorker.model_runner": "vllm.v1.worker.cpu_model_runner.CPUModelRunner",
    "Session.task": "browsergym.miniwob.base.AbstractMiniwobTask",
    "Session.page": "playwright.sync_api.Page",
}
READS_KEYWORDS = {  # who reads the keyword arguments that a signature only collects
    "LLM.__init__": "vllm.EngineArgs",
    "_BaseAutoModelClass.from_pretrained": "transformers.PreTrainedModel.from_pretrained",
    "AutoTokenizer.from_pretrained": "transformers.AutoTokenizer.from_pretrained",
}
KEYS = [  # (module, strings that stand in it, where they are read)
    ("trl.trainer.grpo_trainer", tuple(Ledger().columns()), "helpers/episodes/episode.py"),
    (
        "trl.trainer.grpo_trainer",
        (
            "reward",
            "reward_std",
            "frac_reward_zero_std",
            "entropy",
            "step_time",
            "completions/mean_length",
            "sampling/sampling_logp_difference/mean",
        ),
        "helpers/learning/trainer.py",
    ),
    ("transformers.trainer", ("loss", "grad_norm", "learning_rate"), "helpers/learning/trainer.py"),
    (
        "browsergym.miniwob.base",
        ("RAW_REWARD_GLOBAL", "DONE_GLOBAL", "REWARD_REASON", "error"),
        "helpers/browser/warm.py",
    ),
    (
        "browsergym.core.observation",
        ("browsergym_id", "bbox", "clickable"),
        "helpers/browser/warm.py",
    ),
]


class Value(typing.NamedTuple):
    """What an expression is: ``thing`` itself, one or many instances of it, or a method with its ``self`` filled in."""

    thing: typing.Any
    kind: typing.Literal["itself", "instance", "many", "method"] = "itself"
    own: str = ""  # the class of the course that derives from ``thing``; "super()": ``thing`` without what that adds


MISSING = Value(None)


def value_of(thing) -> Value:
    if isinstance(thing, types.ModuleType | type) or inspect.isroutine(thing):
        return Value(thing)
    return Value(type(thing), "instance")


# What is installed


def find(path: str):
    """The module, class or function with this dotted path. AttributeError or ImportError where there is none."""
    parent, _, name = path.rpartition(".")
    if not parent:
        return importlib.import_module(path)
    parent = find(parent)
    if isinstance(parent, types.ModuleType) and not hasattr(parent, name):
        return importlib.import_module(path)
    return getattr(parent, name)


@functools.cache
def distributions() -> dict[str, list[str]]:
    return importlib.metadata.packages_distributions()


def module_of(thing) -> str:
    return (
        thing.__name__
        if isinstance(thing, types.ModuleType)
        else getattr(thing, "__module__", None) or ""
    )


def package_of(module: str) -> str:
    """ "trl 1.16.0" for TRL's modules."""
    names = distributions().get(module.split(".")[0], [module.split(".")[0]])
    name = max(
        names, key=lambda n: module.startswith(n.replace("-", "."))
    )  # two packages share the name browsergym
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return f"{name} {importlib.metadata.version(name)}"
    return name


def is_foreign(thing) -> bool:
    top = module_of(thing).partition(".")[0]
    return top in distributions() and top not in UNCHECKED


@functools.cache
def source(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


@functools.cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(source(path))


def stands_in(module: str, key: str) -> bool:
    """Whether a string stands in one of the imported modules of a package."""
    paths = [
        getattr(m, "__file__", None) or ""
        for name, m in list(sys.modules.items())
        if f"{name}.".startswith(f"{module}.")
    ]
    return any(
        re.search(rf"[\"']{re.escape(key)}[\"']", source(path))
        for path in paths
        if path.endswith(".py")
    )


@functools.cache
def assigned_in(cls: type) -> set[str]:
    """The names that a class and its bases assign to ``self``."""
    paths = {c: getattr(sys.modules.get(c.__module__), "__file__", None) or "" for c in cls.__mro__}
    bodies = [
        node
        for c, path in paths.items()
        if path.endswith(".py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and node.name == c.__name__
    ]
    return {
        n.attr
        for body in bodies
        for n in ast.walk(body)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and ast.unparse(n.value) == "self"
    }


@functools.cache
def hints_of(thing) -> dict[str, typing.Any]:
    """Annotations of a function, or of a class with its bases and the arguments that it is made with."""
    hints = {}
    for part in (thing.__init__, *reversed(thing.__mro__)) if inspect.isclass(thing) else (thing,):
        try:
            hints |= typing.get_type_hints(part)
        except Exception:  # it names what is imported for type checkers only
            hints |= getattr(part, "__annotations__", {})
    return hints


def instance(hint) -> Value | None:
    """What an annotation promises, where that is one foreign class (besides None and built-in types) or a list of it."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        found = [value for value in map(instance, arguments) if value]
        return found[0] if len(found) == 1 else None
    if typing.get_origin(hint) is list and (one := instance(arguments[0])):
        return one._replace(kind="many")
    return Value(hint, "instance") if inspect.isclass(hint) and is_foreign(hint) else None


def signature(value: Value) -> inspect.Signature | None:
    """The parameters of a call, without ``self``; None where they cannot be known."""
    thing, bound = value.thing, value.kind == "method"
    if value.kind == "instance":  # torch's modules pass a call on
        thing, bound = getattr(thing, "forward", thing.__call__), True
    try:
        found = inspect.signature(thing)
        bound = bound and not inspect.ismethod(
            inspect.unwrap(thing)
        )  # a copy of a method that was bound before
    except (TypeError, ValueError):
        return None
    return found.replace(parameters=list(found.parameters.values())[1:]) if bound else found


def reads_keyword(thing, name: str, collected: inspect.Parameter) -> bool:
    """Whether a function with ``**kwargs`` does something with this one, as far as that can be known."""
    if typed := typing.get_args(collected.annotation):  # Unpack[SomeTypedDict]
        return name in typed[0].__annotations__
    called = thing.__init__ if inspect.isclass(thing) else thing
    if not (reader := READS_KEYWORDS.get(called.__qualname__)):
        return True
    USED.add(called.__qualname__)
    reader = find(reader)
    return name in inspect.signature(reader).parameters or f'"{name}"' in inspect.getsource(reader)


# What the course uses

USED: set[str] = set()  # entries of the tables that were of use


class Reader(ast.NodeVisitor):
    """Walks code and collects a sentence in ``found`` for whatever is not as it is used."""

    def __init__(self):
        self.found: list[str] = []
        self.added: dict[
            str, set[str]
        ] = {}  # what the course adds to the foreign classes that it derives from
        self.asked: set[str] = set()  # attributes that the course asks for, anywhere
        self.optional: set[str] = set()  # and those that it asks for with a default
        self.where, self.scopes, self.self_ = "", [{}], None

    def report(self, node: ast.AST, thing, sentence: str) -> None:
        at = self.where if "cell" in self.where else f"{self.where}, line {node.lineno}"
        self.found.append(
            f"{package_of(thing if isinstance(thing, str) else module_of(thing))}: {sentence} ({at})."
        )

    # Names and types

    def bind(self, target: ast.expr, value: Value | None) -> None:
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = value or self.known(NAMES, target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self.bind(part, None)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, None)

    def known(self, table: dict[str, str], key: str) -> Value | None:
        if key not in table or (table[key].startswith("vllm.") and vllm_problem()):
            return None
        USED.add(key)
        try:
            return Value(find(table[key]), "instance")
        except (AttributeError, ImportError):
            self.found.append(
                f"{package_of(table[key])}: there is no {table[key]} (a table of {Path(__file__).name})."
            )

    def resolve(self, node: ast.expr) -> Value | None:
        """What an expression is, None where that is not known."""
        if isinstance(node, ast.Name):
            return next(
                (scope[node.id] for scope in reversed(self.scopes) if node.id in scope), None
            )
        if isinstance(node, ast.Attribute):
            found = self.member(self.resolve(node.value), node.attr)
            return None if found is MISSING else found
        if isinstance(node, ast.Subscript):
            many = self.resolve(node.value)
            return many._replace(kind="instance") if many and many.kind == "many" else None
        if isinstance(node, ast.Call):
            if ast.unparse(node.func) == "super":
                return self.self_ and self.self_._replace(own="super()")
            called = self.resolve(node.func)
            if called is None:
                return None
            if inspect.isclass(called.thing) and called.kind == "itself":
                return called._replace(kind="instance")
            thing = (
                getattr(called.thing, "forward", None)
                if called.kind == "instance"
                else called.thing
            )
            return instance(hints_of(thing).get("return")) if is_foreign(thing) else None
        return None

    def member(self, value: Value | None, name: str) -> Value | None:
        """The attribute of a value: None where nothing is known of it, MISSING where it is not there."""
        if value is None or value.kind in ("many", "method"):
            return None
        thing = value.thing
        for cls in (value.own, *(c.__name__ for c in getattr(thing, "__mro__", ()))):
            if typed := self.known(ATTRIBUTES, f"{cls}.{name}"):
                return typed if cls == value.own or self.there(thing, name) else MISSING
        if not is_foreign(thing) or (
            value.own != "super()" and name in self.added.get(thing.__name__, ())
        ):
            return None
        if isinstance(thing, types.ModuleType):
            try:
                return value_of(find(f"{thing.__name__}.{name}"))
            except (AttributeError, ImportError):
                return MISSING
        static = inspect.getattr_static(thing, name, None)
        if isinstance(static, classmethod) or (
            inspect.isfunction(static) and value.kind == "instance"
        ):
            return Value(getattr(static, "__func__", static), "method")
        if value.kind == "itself":
            return value_of(getattr(thing, name)) if hasattr(thing, name) else MISSING
        if isinstance(static, property):
            return instance(hints_of(static.fget).get("return"))
        return instance(hints_of(thing).get(name)) if self.there(thing, name) else MISSING

    @staticmethod
    def there(cls: type, name: str) -> bool:
        """Whether instances of a class have an attribute, or may have."""
        anything = getattr(
            cls, "__getattr__", None
        )  # torch's looks for modules and weights, which are assigned, too
        return (
            hasattr(cls, name)
            or name in hints_of(cls)
            or name in assigned_in(cls)
            or bool(anything and not anything.__module__.startswith("torch."))
        )

    # Statements that bind names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            thing = self.imported(node, alias.name)
            top = alias.name.partition(".")[0]
            self.scopes[-1][alias.asname or top] = (
                value_of(thing if alias.asname else find(top)) if thing else None
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            thing = self.imported(node, f"{node.module}.{alias.name}")
            self.scopes[-1][alias.asname or alias.name] = (
                value_of(thing) if thing is not None else None
            )

    def imported(self, node: ast.AST, path: str):
        top = path.partition(".")[0]
        own = (ROOT / top).is_dir() or (ROOT / "scripts" / f"{top}.py").exists()
        if own or top in sys.stdlib_module_names or (top == "vllm" and vllm_problem()):
            return None
        try:
            return find(path)
        except (AttributeError, ImportError):
            return self.report(node, path, f"there is no {path}")

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.bind(target, self.resolve(node.value))

    def visit_comprehension(self, node: ast.comprehension) -> None:
        many = self.resolve(node.iter)
        self.bind(
            node.target, many._replace(kind="instance") if many and many.kind == "many" else None
        )
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, None)
        self.generic_visit(node)

    def visit_expression_with_names(self, node) -> None:
        self.scopes.append({})
        for generator in node.generators:
            self.visit(generator)
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                self.visit(getattr(node, part))
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = (
        visit_expression_with_names
    )

    def visit_function(self, node) -> None:
        given = node.args
        self.scopes.append({})
        for argument in (
            *given.posonlyargs,
            *given.args,
            *given.kwonlyargs,
            *filter(None, (given.vararg, given.kwarg)),
        ):
            typed = (
                self.resolve(argument.annotation) if getattr(argument, "annotation", None) else None
            )
            self.bind(ast.Name(argument.arg), typed and typed._replace(kind="instance"))
        if self.self_ and given.args and given.args[0].arg == "self":
            self.scopes[-1]["self"] = self.self_
        self.generic_visit(node)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function

    # What is checked

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        value = self.resolve(node.value)
        if value is None or value.own != "super()":
            self.asked.add(node.attr)
        if (
            isinstance(node.ctx, ast.Store)
            and value
            and value.kind == "instance"
            and value.thing.__name__ in self.added
        ):
            self.added[value.thing.__name__].add(node.attr)
        elif node.attr not in self.optional and self.member(value, node.attr) is MISSING:
            self.report(node, value.thing, f"{value.thing.__name__} has no {node.attr}")

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called, arguments = ast.unparse(node.func), node.args
        value = self.resolve(node.func)
        if called == "getattr" and len(arguments) == 3 and isinstance(arguments[1], ast.Constant):
            self.optional.add(arguments[1].value)
        if called == "functools.partial":
            value, arguments = (
                self.resolve(arguments[0]),
                [*arguments[1:], ast.Starred(ast.Name("others"))],
            )
        if (
            value
            and value.kind != "many"
            and is_foreign(value.thing)
            and (found := signature(value))
        ):
            self.arguments(node, value, arguments, found.parameters)

    def arguments(
        self, node: ast.Call, value: Value, given: list[ast.expr], parameters: typing.Mapping
    ) -> None:
        name = value.thing.__qualname__
        keywords = {k.arg for k in node.keywords}
        more = None in keywords or any(
            isinstance(a, ast.Starred) for a in given
        )  # * or **: some are not seen here
        by_position = [
            p.name
            for p in parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        collects = {
            p.kind: p for p in parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        ours = self.added.get(value.thing.__name__, set()) if value.own else set()
        for keyword in sorted(keywords - {None} - parameters.keys() - ours):
            rest = collects.get(inspect.Parameter.VAR_KEYWORD)
            if rest is None or not reads_keyword(value.thing, keyword, rest):
                self.report(node, value.thing, f"{name} takes no argument {keyword!r}")
        if more:
            return
        if len(given) > len(by_position) and inspect.Parameter.VAR_POSITIONAL not in collects:
            self.report(
                node,
                value.thing,
                f"{name} takes {len(by_position)} arguments by position, not {len(given)}",
            )
        for p in parameters.values():
            if (
                p.default is p.empty
                and p not in collects.values()
                and p.name not in {*by_position[: len(given)], *keywords}
            ):
                self.report(node, value.thing, f"{name} wants an argument {p.name!r}")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """A key that is read from what a foreign method returns stands in its module."""
        self.generic_visit(node)
        called = self.resolve(node.value.func) if isinstance(node.value, ast.Call) else None
        if called and called.kind in ("method", "instance"):
            self.key(node, node.slice, called.thing)

    def key(self, node: ast.AST, key: ast.expr, thing) -> None:
        text, package = getattr(key, "value", None), module_of(thing).partition(".")[0]
        if isinstance(text, str) and is_foreign(thing) and not stands_in(package, text):
            self.report(
                node,
                thing,
                f"{thing.__qualname__} knows no {text!r}, nor does any other module of {package}",
            )

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [
            base.thing
            for base in map(
                self.resolve,
                (getattr(b, "value", b) if isinstance(b, ast.Subscript) else b for b in node.bases),
            )
            if base and is_foreign(base.thing)
        ]
        methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
        outer, self.self_ = self.self_, Value(bases[0] if bases else object, "instance", node.name)
        init = methods["__init__"].args if "__init__" in methods else None
        passes_on = init is None or (init.kwarg and len(init.args) == 1)
        self.scopes[-1][node.name] = Value(bases[0], own=node.name) if bases and passes_on else None
        for base in bases:
            self.added.setdefault(base.__name__, set()).update(
                methods,
                (
                    t.id
                    for part in node.body
                    if isinstance(part, ast.Assign | ast.AnnAssign)
                    for t in getattr(part, "targets", None) or [part.target]
                    if isinstance(t, ast.Name)
                ),
            )
        self.generic_visit(node)
        self.self_ = outer
        for base in bases:
            for name in getattr(base, "__abstractmethods__", frozenset()) - methods.keys():
                self.report(
                    node,
                    base,
                    f"{base.__name__} wants a method {name}, which {node.name} does not define",
                )
            for name, method in methods.items():
                if not name.startswith("__"):
                    self.override(base, method)

    def override(self, base: type, method: ast.FunctionDef) -> None:
        """A method that a foreign class has too takes what that one takes; one that it has not is asked for by the course."""
        name, upstream = f"{base.__name__}.{method.name}", getattr(base, method.name, None)
        if upstream is None:
            if method.name not in self.asked and all(
                isinstance(d, ast.Name) for d in method.decorator_list
            ):
                self.report(method, base, f"there is no {name} to override")
            return
        if not inspect.isfunction(upstream):
            return
        theirs, ours = signature(Value(upstream, "method")).parameters, method.args
        by_position = [a.arg for a in (*ours.posonlyargs, *ours.args)][1:]
        optional = {
            *by_position[len(by_position) - len(ours.defaults) :],
            *(a.arg for a in ours.kwonlyargs),
        }
        for place, p in enumerate(theirs.values()):
            taken = (
                p.name in by_position
                or p.name in optional
                or ours.kwarg
                or (p.kind is p.VAR_POSITIONAL and ours.vararg)
            )
            if not taken and p.kind is not p.VAR_POSITIONAL:
                self.report(
                    method,
                    base,
                    f"{name} is called with {p.name!r}, which the override does not take",
                )
            elif (
                p.name in by_position
                and p.kind is p.POSITIONAL_OR_KEYWORD
                and by_position.index(p.name) != place
            ):
                self.report(
                    method,
                    base,
                    f"{name} has its argument {p.name!r} in place {place + 1}, the override has not",
                )
        for extra in set(by_position) - optional - theirs.keys():
            self.report(
                method, base, f"{name} is called without {extra!r}, which the override wants"
            )
        for node in ast.walk(method):  # the keys of what is handed over
            match node:
                case ast.Subscript(ast.Name(handed), key) | ast.Call(
                    ast.Attribute(ast.Name(handed), "get"), [key, *_]
                ):
                    if handed in theirs:
                        self.key(node, key, upstream)


def sources() -> list[tuple[str, list[tuple[str, str]]]]:
    """For each file of Python and each notebook: pieces of code and where they stand."""
    files = [
        [(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))]
        for folder in ("helpers", "widgets", "scripts", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        files.append(
            [
                (
                    re.sub(r"^(\s*)[!%].*", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE),
                    f"{path.relative_to(ROOT)}, cell {cell['id']}",
                )
                for cell in cells
                if cell["cell_type"] == "code"
            ]
        )
    return files


def drift(files=None) -> list[str]:
    """What has changed in other packages, a sentence each."""
    reader = Reader()
    for _ in range(2):  # the first time it learns what the course adds and asks for
        reader.found = []
        for pieces in sources() if files is None else files:
            reader.scopes = [{}]
            for code, reader.where in pieces:
                reader.visit(ast.parse(code))
    return reader.found


def test_what_the_course_uses_is_there_and_every_table_is_needed():
    assert drift() == []
    needed = {
        key: path for table in (NAMES, ATTRIBUTES, READS_KEYWORDS) for key, path in table.items()
    }
    assert {
        key for key, path in needed.items() if not (path.startswith("vllm.") and vllm_problem())
    } <= USED


@pytest.mark.parametrize("module, keys, path", KEYS)
def test_keys_are_written_and_read(module, keys, path):
    find(module)
    for key in keys:
        assert stands_in(module, key), (
            f"{package_of(module)}: {module} no longer names {key!r}, which {path} reads."
        )
        assert re.search(rf"[\"']{re.escape(key)}[\"']", source(str(ROOT / path))), (
            f"{path} no longer reads {key!r}."
        )


def test_vllm_knows_our_engine_settings_and_variables(monkeypatch):
    if vllm_problem():
        pytest.skip(vllm_problem())
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # on a CPU there are more of them
    known = inspect.signature(find("vllm.EngineArgs")).parameters
    assert len(engine_settings()) > 1 and engine_settings().keys() <= known.keys(), package_of(
        "vllm"
    )
    ours = {
        name
        for path in (ROOT / "helpers").rglob("*.py")
        for name in re.findall(r'"(VLLM_[A-Z_]+)"', source(str(path)))
    }
    assert len(ours) > 2 and ours <= find("vllm.envs.environment_variables").keys(), package_of(
        "vllm"
    )


def test_browsergyms_marking_script_is_the_one_that_the_page_script_changes():
    code = "from helpers.browser.warm import _page_script; print(_page_script())"  # it patches Playwright: not in this process
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and "parent_bid" in done.stdout, done.stderr


# Drift that was made up is reported, and nothing else is

CODE = """
from trl import GRPOConfig, GRPOTrainer
from trl.generation import vllm_generation
from trl.trainer.utils import selective_log_softmax_and_entropy
import transformers

class Trainer(GRPOTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = self.loss_type

    def _compute_loss(self, model, inputs):
        rows = inputs["advantages"]
        return super()._compute_loss(model, inputs)

class Log(transformers.TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        return state.global_step

def train(model, tokenizer, rows):
    trainer = Trainer(model=model, args=GRPOConfig(output_dir="x", top_k=0), train_dataset=rows, reward_funcs=[])
    trainer.add_callback(Log())
    trainer.vllm_generation.sync_weights = trainer.seen
    vllm_generation.LLM = None
    selective_log_softmax_and_entropy(rows, rows)
    out = model(input_ids=rows, logits_to_keep=1)
    out.past_key_values.reorder_cache(rows)
    return tokenizer("a", add_special_tokens=False)["input_ids"], trainer.train(resume_from_checkpoint=None)
"""


def test_code_that_fits_is_left_in_peace():
    assert drift([[(CODE, "code.py")]]) == []


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ("GRPOConfig, GRPO", "GRPOConfig, SPQR, GRPO", "there is no trl.SPQR"),
        (
            "from trl.generation import",
            "from trl.generator import",
            "there is no trl.generator.vllm_generation",
        ),
        ("top_k=0", "top_q=0", "GRPOConfig takes no argument 'top_q'"),
        ("train_dataset=rows", "data=rows", "GRPOTrainer takes no argument 'data'"),
        ("(rows, rows)", "(rows)", "selective_log_softmax_and_entropy wants an argument 'index'"),
        (
            "(rows, rows)",
            "(rows, rows, 1, 2, 3, 4)",
            "selective_log_softmax_and_entropy takes 5 arguments by position, not 6",
        ),
        ("_compute_loss(", "_sum_loss(", "GRPOTrainer has no _sum_loss"),
        ("on_log", "on_logging", "there is no TrainerCallback.on_logging to override"),
        (
            "_compute_loss(self, model, inputs)",
            "_compute_loss(self, model)",
            "GRPOTrainer._compute_loss is called with 'inputs', which the override does not take",
        ),
        (
            "_compute_loss(self, model, inputs)",
            "_compute_loss(self, inputs, model)",
            "GRPOTrainer._compute_loss has its argument 'model' in place 1, the override has not",
        ),
        (
            "_compute_loss(self, model, inputs)",
            "_compute_loss(self, model, inputs, scale)",
            "GRPOTrainer._compute_loss is called without 'scale', which the override wants",
        ),
        ("self.loss_type", "self.loss_kind", "GRPOTrainer has no loss_kind"),
        (
            'inputs["advantages"]',
            'inputs["edges"]',
            "GRPOTrainer._compute_loss knows no 'edges', nor does any other module of trl",
        ),
        ("sync_weights", "copy_weights", "VLLMGeneration has no copy_weights"),
        (
            "vllm_generation.LLM",
            "vllm_generation.Engine",
            "trl.generation.vllm_generation has no Engine",
        ),
        ("logits_to_keep", "logits_kept", "LlamaForCausalLM takes no argument 'logits_kept'"),
        ("out.past_key_values.", "out.past_values.", "CausalLMOutputWithPast has no past_values"),
        ("reorder_cache", "sort_cache", "Cache has no sort_cache"),
        (
            '["input_ids"]',
            '["ids_of"]',
            "TokenizersBackend knows no 'ids_of', nor does any other module of transformers",
        ),
        ("resume_from_checkpoint", "resume", "Trainer.train takes no argument 'resume'"),
    ],
)
def test_made_up_drift_is_one_sentence(old, new, sentence):
    assert old in CODE
    found = drift([[(CODE.replace(old, new), "code.py")]])
    assert any(
        re.fullmatch(
            rf"(trl|transformers) \d[\w.]+: {re.escape(sentence)} \(code\.py, line \d+\)\.", line
        )
        for line in found
    ), found


def test_a_vllm_that_changed_is_noticed_in_the_courses_own_code():
    if vllm_problem():
        pytest.skip(vllm_problem())
    where = "helpers/policy/generators.py"
    code = source(str(ROOT / where))
    for old, new, sentence in (
        ("outputs[0].token_ids", "outputs[0].ids_of", "CompletionOutput has no ids_of"),
        ("o.outputs[0]", "o.answers[0]", "RequestOutput has no answers"),
        ("use_tqdm=False", "quiet=True", "LLM.generate takes no argument 'quiet'"),
        ("max_num_seqs=64", "at_once=64", "LLM takes no argument 'at_once'"),
    ):
        assert old in code
        found = drift([[(code.replace(old, new), where)]])
        assert found and all(line.startswith("vllm") and sentence in line for line in found), found


def test_a_trainer_that_changed_is_noticed_in_the_courses_own_code(monkeypatch):
    """As if TRL had dropped an argument, and transformers had renamed a method that is overridden."""
    code = [[(source(str(ROOT / "helpers" / "training.py")), "helpers/learning/trainer.py")]]
    assert drift(code) == []

    def selective_log_softmax_and_entropy(logits, index):
        pass

    selective_log_softmax_and_entropy.__module__ = "trl.trainer.utils"
    monkeypatch.setattr(
        "trl.trainer.utils.selective_log_softmax_and_entropy", selective_log_softmax_and_entropy
    )
    monkeypatch.delattr("transformers.Trainer._save_rng_state")
    found = "\n".join(drift(code))
    assert len(found.splitlines()) == 3
    for wanted in (
        "takes no argument 'temperature'",
        "has no _save_rng_state",
        "no GRPOTrainer._save_rng_state to override",
    ):
        assert wanted in found
