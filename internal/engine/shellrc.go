package engine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxShellRC bounds the user's own startup file of a shell: it travels in one
// variable, which the kernel limits to 128 KiB.
const maxShellRC = 64 << 10

// shellVariable carries what the shell reads when it starts. The shell unsets it.
const shellVariable = "LITTERBOX_SHELL_RC"

// interactive makes a shell inside start like a usual interactive one. Nothing is
// mounted for it and no file is written, so it works in every place; an unknown
// shell starts as it is.
func interactive(shell config.Shell, caller *caller.Caller, argv []string) (with, env []string, err error) {
	if len(argv) != 1 {
		return argv, nil, nil
	}
	own, err := readShellRC(shell.RC, caller)
	if err != nil {
		return nil, nil, err
	}
	switch path.Base(argv[0]) {
	case "bash":
		// The pipe of <(…) stays open in the shell that replaces this one.
		return []string{argv[0], "-c", `exec "$0" --rcfile <(printf %s "$` + shellVariable + `") -i`, argv[0]}, []string{shellVariable + "=" + bashRC + own}, nil
	case "zsh":
		return []string{argv[0], "-fc", `d=$(mktemp -d) && print -r -- "$` + shellVariable + `" >$d/.zshrc && ZDOTDIR=$d exec "$0" -i`, argv[0]}, []string{shellVariable + "=" + zshRC + own}, nil
	case "fish":
		return []string{argv[0], "-C", "set -l rc $" + shellVariable + "; set -e " + shellVariable + "; eval $rc"}, []string{shellVariable + "=" + own}, nil
	case "sh", "dash", "ash", "ksh":
		// POSIX: an interactive shell reads the file that ENV names.
		return []string{argv[0], "-c", `f=$(mktemp) && printf %s "$` + shellVariable + `" >"$f" && ENV=$f && export ENV; exec "$0" -i`, argv[0]}, []string{shellVariable + "=" + shRC + own}, nil
	}
	return argv, nil, nil
}

// readShellRC reads the file that shell.rc names; one that is missing is not an error.
func readShellRC(file string, caller *caller.Caller) (string, error) {
	paths := ofHome([]string{file}, caller.Home)
	if file == "" || len(paths) == 0 {
		return "", nil
	}
	// O_NONBLOCK: opening a named pipe would wait for a writer for ever.
	f, err := os.OpenFile(paths[0], os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.NotFound, "cannot open a shell: %q, which shell.rc names, does not exist", paths[0]).
			WithHint("litterbox config show --origin")
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q, which shell.rc names", paths[0])
	}
	defer f.Close() // read only: nothing can be lost
	content, err := io.ReadAll(io.LimitReader(f, maxShellRC+1))
	switch {
	case err != nil:
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q, which shell.rc names", paths[0])
	case len(content) > maxShellRC:
		return "", fault.New(fault.Invalid, "cannot use %q, which shell.rc names: it is larger than 64 KiB", paths[0])
	case strings.ContainsRune(string(content), 0):
		return "", fault.New(fault.Invalid, "cannot use %q, which shell.rc names: it holds a NUL byte", paths[0])
	}
	return string(content), nil
}

// bashRC is the content that distributions put into a new user's .bashrc, with
// the sandbox's name in the prompt. The sandbox's own .bashrc comes after it.
const bashRC = `unset ` + shellVariable + `
[ -r /etc/bash.bashrc ] && . /etc/bash.bashrc
HISTCONTROL=ignoreboth
shopt -s checkwinsize histappend
case $TERM in
dumb | '') PS1='$LITTERBOX:\w\$ ' ;;
*)
	PS1='\[\e[1;33m\]$LITTERBOX\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ '
	command -v dircolors >/dev/null && eval "$(dircolors -b)"
	alias ls='ls --color=auto' grep='grep --color=auto' diff='diff --color=auto'
	;;
esac
alias ll='ls -alF' la='ls -A' l='ls -CF'
if ! shopt -oq posix && [ -r /usr/share/bash-completion/bash_completion ]; then
	. /usr/share/bash-completion/bash_completion
fi
[ -r ~/.bashrc ] && . ~/.bashrc
`

// shRC is the same for a plain POSIX shell, whose prompt knows variables alone. The
// file it is read from goes first.
const shRC = `unset ` + shellVariable + `
rm -f -- "$ENV"; unset ENV
PS1='$LITTERBOX:$PWD$ '
if [ "${TERM:-dumb}" != dumb ] && ls --color=auto -d / >/dev/null 2>&1; then
	alias ls='ls --color=auto' grep='grep --color=auto'
fi
alias ll='ls -alF' la='ls -A' l='ls -CF'
`

// zshRC is the same for zsh. The directory it is read from goes first.
const zshRC = `unset ` + shellVariable + `
rm -rf -- "$ZDOTDIR"; unset ZDOTDIR
HISTFILE=~/.zsh_history HISTSIZE=1000 SAVEHIST=1000
autoload -Uz compinit && compinit -u
setopt prompt_subst hist_ignore_dups
if [[ $TERM == dumb || -z $TERM ]]; then
	PROMPT='$LITTERBOX:%~%# '
else
	PROMPT='%B%F{yellow}$LITTERBOX%f%b:%B%F{blue}%~%f%b%# '
	alias ls='ls --color=auto' grep='grep --color=auto' diff='diff --color=auto'
fi
alias ll='ls -alF' la='ls -A' l='ls -CF'
[[ -r ~/.zshrc ]] && . ~/.zshrc
`
