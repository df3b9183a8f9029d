"""Completion in bash, whose words end at colons: ``mma.sp::ordered_metadata`` is three of them.

Click completes bash's words.  This module completes the line itself, and leaves out of its results the words that bash considers complete.
For zsh and fish Click's own completion works.
"""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

_SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' response
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1)
    COMPREPLY=()
    local item
    for item in $response; do
        case ${item%%%%,*} in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${item#*,}") ;;
        esac
    done
    return 0
}
%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}
%(complete_func)s_setup;
"""


class LineComplete(BashComplete):
    """Completion from the whole line up to the cursor."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words after the program's name, and the one that is begun."""
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="replace")
        words = split_arg_string(line)
        begun = "" if line[-1:].isspace() else words.pop()
        self._done = ""
        if ":" in os.environ["COMP_WORDBREAKS"] and not _quoted(line):
            value = begun.partition("=")[2] if begun.startswith("-") else begun  # the value of an option is a separate word
            self._done = value[: value.rfind(":") + 1]
        return words[1:], begun

    def format_completion(self, item: CompletionItem) -> str:
        """``type,value``, without the part that bash has already."""
        return f"{item.type},{item.value.removeprefix(self._done)}"


def _quoted(line: str) -> bool:
    """Whether a quotation mark is open at the end of the line, in which case bash breaks no word."""
    mark = ""
    for character in line:
        if not mark and character in "'\"":
            mark = character
        elif character == mark:
            mark = ""
    return bool(mark)


add_completion_class(LineComplete, "bash")
