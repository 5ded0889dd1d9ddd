"""The entry point of `wms`: runs a command, and reports a failure as text and by the exit code."""

import os
import sys
from collections.abc import Sequence

from wms.cli.session import BAD_INPUT, FAULT, INTERRUPTED, NOT_ALLOWED, OK, UNAVAILABLE

STDIN = "/dev/stdin"
ASK_COMPLETION = "_complete"
_NOT_ALLOWED = (
    "NO_SUCH_JOB",
    "NO_SUCH_PILOT",
    "NOT_ALLOWED",
    "NOT_AN_OPERATOR",
    "NO_TOKEN",
    "KEY_EXPOSED",
    "KEY_UNREADABLE",
)


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:  # noqa: PLR0911 - one exit code a kind of ending
    """Run a command and return its exit code. An error is printed as text. Only with WMS_DEBUG set does a bug raise its exception."""
    from cyclopts.exceptions import CycloptsError

    from wms.cli.printing import give_up_output
    from wms.errors import Rejected, Unavailable

    try:
        answer = _answer(arguments)
        sys.stdout.flush()
    except CycloptsError as error:
        return _say(arguments, "USAGE", *_usage_advice(arguments, error), code=BAD_INPUT)
    except Rejected as fault:
        code = NOT_ALLOWED if fault.code in _NOT_ALLOWED or fault.code.startswith("TOKEN_") else BAD_INPUT
        return _say(arguments, fault.code, fault.message, fault.remedy, fault.details, code=code)
    except Unavailable as fault:
        usual = "" if "up" in arguments else "`wms status` shows how the system does; `wms up` starts one"
        remedy = usual if fault.remedy is None else fault.remedy
        return _say(arguments, "UNAVAILABLE", fault.message, remedy, code=UNAVAILABLE)
    except KeyboardInterrupt:
        sys.stderr.write("wms: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        give_up_output()
        return OK
    except PermissionError as error:
        place = f"{error.filename}: " if error.filename else ""
        remedy = "it may be another user's: `wms token client` makes a directory for each user of a system"
        return _say(arguments, "FORBIDDEN", f"{place}permission denied", remedy, code=NOT_ALLOWED)
    except Exception as error:
        if os.environ.get("WMS_DEBUG"):
            raise
        return _say(
            arguments,
            "FAULT",
            f"a fault of ours: {error!r}",
            "WMS_DEBUG=1 shows where; please report it",
            code=FAULT,
        )
    return answer if isinstance(answer, int) else OK


def _answer(arguments: Sequence[str]) -> object:
    if arguments[:1] == [ASK_COMPLETION]:
        from wms.cli.completion import answer as complete

        return complete(arguments[1:])
    from wms.cli.app import app_for

    return app_for(arguments)(_marked(arguments))


def _marked(arguments: Sequence[str]) -> list[str]:
    """Return the arguments prepared for the parser. `-` becomes a path that stands for standard input.

    In `wms submit`, a mark is put after `--`, since the parser drops `--` itself and the words after it are a program.
    """
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    words[:end] = [STDIN if word == "-" else word for word in words[:end]]
    if "submit" in words[:end] and end < len(words):
        from wms.cli.job_descriptions import PROGRAM_MARK

        words.insert(end + 1, PROGRAM_MARK)
    return words


def _usage_advice(arguments: Sequence[str], error: Exception) -> tuple[str, str]:
    """Return what is wrong with the arguments, and the remedy. `error` is the argument parser's."""
    from wms.cli.app import command_in
    from wms.cli.other_systems import same_here, same_option

    first = arguments[0]
    if command_in([first]):
        unknown = getattr(error, "token", None) if type(error).__name__ == "UnknownOptionError" else None
        if first == "submit" and unknown and (ours := same_option(unknown.keyword or unknown.value)):
            return f"there is no option {unknown.keyword or unknown.value} here", f"the same here: {ours}"
        return _usage_fault(error), _usage_remedy(arguments)
    if first.startswith("-"):
        return f"{first} stands before the command", "options stand after it: wms jobs --data DIR"
    if ours := same_here(first):
        return f'there is no command "{first}" here', f"the same here: {ours}"
    return _usage_fault(error), _usage_remedy(arguments)


def _usage_fault(error: Exception) -> str:
    """Return what is wrong with the arguments as one line of text. `error` is the argument parser's."""
    said = " ".join(str(error).split()).removesuffix(".")
    unused = getattr(error, "unused_tokens", None)
    return f"unexpected argument {unused[0]!r}" if said.startswith("Unused Tokens") and unused else said


def _usage_remedy(arguments: Sequence[str]) -> str:
    from wms.cli.app import command_in, subcommand_in

    command = command_in(arguments)
    if command == "submit" and "--" not in arguments:
        return (
            "what the job runs stands after --: wms submit --cpu-time 600 -- ./prog -x; see wms submit --help"
        )
    below = subcommand_in(command, arguments)
    return " ".join(filter(None, ("see wms", command, below, "--help")))


def _say(
    arguments: Sequence[str], name: str, message: str, remedy: str, details: Sequence[str] = (), *, code: int
) -> int:
    # Line ends in the texts of errors were escaped; here they become line ends again.
    message = message.replace("\\n", "\n    ")
    lines = [f"wms: {message}", *(f"  {line}" for line in details)]
    if remedy:
        lines.append(f"  {remedy}")
    sys.stderr.write("\n".join(lines) + "\n")
    if "--json" in arguments:
        from wms.cli.printing import show_json

        fault = {"code": name, "message": message, "remedy": remedy, "details": tuple(details)}
        show_json({"error": fault})
    return code


if __name__ == "__main__":
    main()
