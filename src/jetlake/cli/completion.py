"""`jetlake completion`: scripts that make shells complete commands, flags, and names of streams and consumers."""

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """The shells there are scripts for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {
    Shell.BASH: """\
# Completion of jetlake for bash: source <(jetlake completion bash)
_jetlake_complete() {
    local IFS=$'\\n'
    COMPREPLY=($(jetlake __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _jetlake_complete jetlake
""",
    Shell.ZSH: """\
#compdef jetlake
# Completion of jetlake for zsh: source <(jetlake completion zsh)
_jetlake_complete() {
    local -a candidates
    candidates=("${(@f)$(jetlake __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    candidates=(${candidates:#})
    if (( ${#candidates} )); then
        compadd -a candidates
    else
        _files
    fi
}
compdef _jetlake_complete jetlake
""",
    Shell.FISH: """\
# Completion of jetlake for fish: jetlake completion fish | source
function __jetlake_complete
    set -l words (commandline -opc) (commandline -ct)
    jetlake __complete -- $words[2..-1] 2>/dev/null
end
complete -c jetlake -a '(__jetlake_complete)'
""",
}


def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print a script that makes a shell complete commands, flags, streams, consumers, buckets, keys and contexts.

    For bash put `source <(jetlake completion bash)` into ~/.bashrc, for zsh the same into ~/.zshrc, for fish
    `jetlake completion fish | source` into ~/.config/fish/config.fish.
    """
    typer.echo(SCRIPTS[shell], nl=False)
