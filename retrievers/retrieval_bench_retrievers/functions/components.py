"""What a step of a pipeline is given as: a function, an object of a library, or what makes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.calls.foreign import failing, foreign_code
from retrieval_bench.core.calls.usage import report, usage_of
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import EMPTY
from retrieval_bench_retrievers.functions.event_loop import EventLoop
from retrieval_bench_retrievers.functions.user_code import check_call, name_of


def component(
    given: Any, handed: Sequence[str], params: Mapping[str, Any], methods: Sequence[str]
) -> tuple[Any, str, Mapping[str, Any]]:
    """Resolve ``given``: the step, its name, and the parameters that each call of it gets.

    Args:
        given: ``module:name``, ``file.py:name``, or an object. A function that takes ``handed`` is
            the step itself; any other one, and a class, makes it of ``params``.
        handed: names of what the step gets by position.
        methods: names that an object of a library has which is the step itself; none where no
            library has such objects.

    Raises:
        PluginError: it does not resolve.
        ConfigError: it can be neither called nor made like that.
    """
    name = given if isinstance(given, str) else name_of(given)
    made = plugins.load(given) if isinstance(given, str) else given
    if _is_object(made, methods):
        if params:
            raise ConfigError(
                f"{name} is {type(made).__name__}, which takes no parameters here: "
                + ", ".join(sorted(params)),
                fix="remove them, or name a function that takes them and returns it",
            )
        return made, name, EMPTY
    if not callable(made):
        raise ConfigError(
            f"{name} is {type(made).__name__}, not a function"
            if isinstance(given, str)
            else f"{given!r:.60} is no name and no function",
            accepted=f"{_wanted(handed, methods)}, or a function that makes one",
        )
    if inspect.isclass(made) or not _takes(made, handed, params):
        if inspect.isclass(made) or _takes(made, (), params):
            return _made(made, name, handed, params, methods), name, EMPTY
        check_call(made, name, handed, params)
    return made, name, params


def _wanted(handed: Sequence[str], methods: Sequence[str]) -> str:
    function = f"a function of ({', '.join(handed)})"
    objects = " or ".join(f"{method}()" for method in methods)
    return f"{function}, an object with {objects}" if objects else function


def _is_object(candidate: Any, methods: Sequence[str]) -> bool:
    return not inspect.isclass(candidate) and any(hasattr(candidate, method) for method in methods)


def _takes(function: Callable[..., Any], handed: Sequence[str], params: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*handed, **params)
    except TypeError:
        return False
    except ValueError:  # built in C: it does not say what it takes
        return True
    return True


def _made(
    make: Callable[..., Any],
    name: str,
    handed: Sequence[str],
    params: Mapping[str, Any],
    methods: Sequence[str],
) -> Any:
    check_call(make, name, (), params)
    with foreign_code(failing(name, ConfigError, fix="correct it or its params")):
        made = make(**params)
    if not _is_object(made, methods) and not (callable(made) and _takes(made, handed, {})):
        raise ConfigError(
            f"{name} made {type(made).__name__}",
            accepted=_wanted(handed, methods),
            fix="end it with `return`" if made is None else "return one of these",
        )
    return made


class Call:
    """Calls a function of the user's, sync or async, and reports what its answer says of usage."""

    def __init__(self, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        self._function = function
        self._params = params
        self._loop = EventLoop()

    def __call__(self, *handed: Any) -> Any:
        """Call the function, and await its answer where it must be; errors are passed through."""
        answer = self._function(*handed, **self._params)
        if inspect.isawaitable(answer):
            awaitable = answer

            async def wait() -> Any:
                return await awaitable

            answer = self._loop.run(wait)
        report(usage_of(answer))
        return answer

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()


class FunctionStep:
    """A step that is a function of the user's.

    Args:
        function: may be async.
        name: of it, for messages.
    """

    def __init__(self, function: Any, name: str, params: Mapping[str, Any]) -> None:
        self._call = Call(function, params)
        self._name = name

    def describe(self) -> Mapping[str, Any]:
        """The name of the function."""
        return {"function": self._name}

    def close(self) -> None:
        """Close the event loop of an async function."""
        self._call.close()
