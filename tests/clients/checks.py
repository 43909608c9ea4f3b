"""What both client scripts share: a check is a named function; each prints one JSON line {name, ok, detail, ms}.

  python SCRIPT --list                              one JSON object: the package's version, the names of the checks
  python SCRIPT URL CHAT_MODEL EMBEDDING_MODEL      runs them all; exit code 0 when all went well
  python SCRIPT URL CHAT_MODEL EMBEDDING_MODEL -    runs those whose names come on stdin, one a line
"""

import importlib.metadata
import json
import math
import sys
import time
import traceback
import urllib.request
from dataclasses import dataclass

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Service:
    """The running service, and its models by the ids of its catalog."""

    url: str
    chat_model: str
    embedding_model: str

    def running(self):
        """How many responses the service's engines work on, as its metrics tell."""
        with urllib.request.urlopen(f"{self.url}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == "plenum_running")

    def wait_until_free(self, limit_s=10.0):
        """Milliseconds until nothing runs any more."""
        start = time.monotonic()
        while self.running() > 0:
            assert time.monotonic() - start < limit_s, f"still running after {limit_s} s"
            time.sleep(0.01)
        return round((time.monotonic() - start) * 1000)

    def wait_until_busy(self, limit_s=10.0):
        """Returns when something runs."""
        end = time.monotonic() + limit_s
        while self.running() == 0:
            assert time.monotonic() < end, f"nothing runs after {limit_s} s"
            time.sleep(0.01)


_checks = []


def check(function):
    """Registers a check: it takes the service, raises when something is wrong, and may return what it measured."""
    _checks.append(function)
    return function


def person_of(text):
    """The person in a JSON text, held against PERSON."""
    person = json.loads(text)
    assert set(person) == {"name", "age"}, person
    assert isinstance(person["name"], str) and len(person["name"]) <= 12, person
    assert type(person["age"]) is int and 1 <= person["age"] <= 99, person
    return person


def city_of(arguments):
    """The city in a tool call's arguments, held against CITY."""
    assert set(arguments) == {"city"} and isinstance(arguments["city"], str), arguments
    assert len(arguments["city"]) <= 12, arguments
    return arguments["city"]


def dot(a, b):
    assert len(a) == len(b), (len(a), len(b))
    return sum(x * y for x, y in zip(a, b))


def sane_vectors(cat, kitten, railway):
    """Holds three vectors against what any embedding model tells of them."""
    for vector in (cat, kitten, railway):
        assert len(vector) == 384, len(vector)
        assert math.isclose(dot(vector, vector), 1, abs_tol=1e-4), dot(vector, vector)
    near, far = dot(cat, kitten), dot(cat, railway)
    assert near > 0.6 > far, (near, far)
    return f"cat and kitten {near:.3f}, cat and railway {far:.3f}"


def raised(kind, call):
    """The exception of exactly this class that the call raises."""
    try:
        call()
    except Exception as error:  # any other class is told below
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def main(package):
    """Runs a script: `package` is the name of the client it checks."""
    if sys.argv[1:] == ["--list"]:
        names = [function.__name__ for function in _checks]
        print(json.dumps({"version": importlib.metadata.version(package), "checks": names}))
        return
    service = Service(*sys.argv[1:4])
    by_name = {function.__name__: function for function in _checks}
    names = (line.strip() for line in sys.stdin) if sys.argv[4:] == ["-"] else by_name
    results = [_run(by_name[name], service) for name in names]
    sys.exit(0 if all(results) else 1)


def _run(function, service):
    start = time.monotonic()
    try:
        ok, detail = True, function(service)
    except Exception:
        ok, detail = False, traceback.format_exc()
    ms = round((time.monotonic() - start) * 1000)
    line = {"name": function.__name__, "ok": ok, "detail": "" if detail is None else str(detail), "ms": ms}
    print(json.dumps(line), flush=True)
    return ok
