package engine

import (
	"context"
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// boxOf is the sandbox as package frozen knows it.
func (e *Engine) boxOf(p *place) frozen.Box {
	own := p.driver.Ownership(p.record.ID)
	return frozen.Box{Dir: p.dir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}, Whole: p.copied()}
}

// writtenIn lists what a sandbox has written in its workspace. Files that `copy`
// brings are each sandbox's own and left out.
func (e *Engine) writtenIn(ctx context.Context, p *place) (branch.Written, error) {
	written, err := branch.ListWritten(ctx, p.repo, e.workspace(p), p.record.Base, p.path("look"))
	if err != nil {
		return written, err
	}
	brought := func(name string) bool {
		return slices.ContainsFunc(p.config.Copy, func(pattern string) bool {
			for at := name; at != "." && at != "/"; at = path.Dir(at) {
				if match, err := path.Match(pattern, at); err == nil && match {
					return true
				}
			}
			return false
		})
	}
	written.Ignored = slices.DeleteFunc(written.Ignored, brought)
	return written, nil
}

// shownPath is the path of a golden's file as programs inside know it: in the
// project, in HOME, else by its part of the layer.
func shownPath(path string) string {
	switch part, rest := frozen.PartOf(path); part {
	case frozen.Below:
		return rest
	case frozen.Home:
		return "~/" + rest
	}
	return path
}

// searchSecrets searches all of a golden's layer: for values of secrets, any of which
// prevents the golden, and for placeholders, which it lists.
func (e *Engine) searchSecrets(ctx context.Context, p *place, search func(texts [][]byte) ([]frozen.Found, error)) ([]placed, error) {
	secrets, err := keeper.ReadSecrets(p.dir)
	if err != nil {
		return nil, err
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	type text struct{ secret, placeholder string }
	var known []text
	var texts [][]byte
	defer func() {
		for n, one := range known {
			if one.placeholder == "" {
				clear(texts[n])
			}
		}
	}()
	for _, binding := range secrets.Bindings {
		if binding.Placeholder == "" {
			continue
		}
		known, texts = append(known, text{binding.Name, binding.Placeholder}), append(texts, []byte(binding.Placeholder))
		value, err := reader.Read(ctx, binding.From)
		if err != nil {
			return nil, fault.Wrap("", err, "cannot search the golden for the value of %s", binding.Name)
		}
		value = secret.TrimValue(value)
		for _, form := range formsOf(value) {
			known, texts = append(known, text{secret: binding.Name}), append(texts, form)
		}
		clear(value)
	}
	found, err := search(texts)
	if err != nil {
		return nil, err
	}
	places := []placed{}
	for _, one := range found {
		text := known[one.Text]
		if text.placeholder == "" {
			return nil, fault.New(fault.Denied, "the value of the secret %s is in %s", text.secret, shownPath(one.Path)).
				WithHint("have the build remove it, or not write it, then build again")
		}
		places = append(places, placed{Path: one.Path, Secret: text.secret, Placeholder: text.placeholder})
	}
	return places, nil
}

// formsOf are a value and its forms within base64, one for each offset at which it
// may begin there.
func formsOf(value []byte) [][]byte {
	forms := [][]byte{slices.Clone(value)}
	for shift := range 3 {
		text := []byte(base64.StdEncoding.EncodeToString(append(make([]byte, shift), value...)))
		from, to := (shift*8+5)/6, (shift+len(value))*8/6 // characters that depend on the value alone
		if to-from >= secret.Shortest {
			forms = append(forms, text[from:to])
		}
	}
	return forms
}

// buildAgents makes sure that clients are installed.
func buildAgents(ctx context.Context, e *Engine, p *place, b *building) error {
	for _, name := range p.config.Golden.Agents {
		client, known := profile.ByName(name)
		if !known {
			return fault.New(fault.Invalid, "golden.agents: there is no client %q", name).WithHint("litterbox agent run --help")
		}
		program, err := e.clientProgram(ctx, p, client)
		if err != nil {
			return err
		}
		b.output.note("%s: %s\n", name, program)
	}
	return nil
}

// buildTools makes sure that each tool is installed in its version.
func buildTools(ctx context.Context, e *Engine, p *place, b *building) error {
	for _, name := range slices.Sorted(maps.Keys(p.config.Golden.Tools)) {
		version := p.config.Golden.Tools[name]
		b.output.note("%s %s\n", name, version)
		if err := e.buildStep(ctx, p, b, "tools."+name, []string{"sh", "-c", toolScript, "sh", name, version, toolsInside(homeInside(callerOf(ctx), p.record.Repository))}); err != nil {
			return err
		}
	}
	return nil
}

// toolsInside is where commands of installed tools are found.
func toolsInside(home string) string { return home + "/.local/share/litterbox/bin" }

// toolScript provides $1 in version $2, with its commands below $3: as already
// installed, by its own installer, or by an installed runtime manager.
const toolScript = `set -eu
tool=$1 want=$2 bin=$3
has() { command -v "$1" >/dev/null 2>&1; }
say() {
	case $tool in
	node) node --version ;;
	go) GOTOOLCHAIN=local go env GOVERSION ;;
	rust) rustc --version ;;
	python) python3 --version ;;
	*) "$tool" --version ;;
	esac
}
right() { say 2>/dev/null | tr ' ' '\n' | sed 's/^v//; s/^go//' | grep -qxF -- "$want"; }
lend() { # the commands in $1
	mkdir -p "$bin"
	for one in "$1"/*; do [ -x "$one" ] && [ ! -d "$one" ] && ln -sf "$one" "$bin/"; done
	hash -r
}
if right; then exit 0; fi
case $tool in
go) if has go; then
	GOTOOLCHAIN="go$want" go version >/dev/null
	lend "$(GOTOOLCHAIN="go$want" go env GOROOT)/bin"
	right && exit 0
fi ;;
rust) if has rustup; then
	export RUSTUP_HOME="$HOME/.local/share/litterbox/rustup"
	rustup toolchain install "$want" --profile minimal --no-self-update
	lend "$RUSTUP_HOME/toolchains/$(ls "$RUSTUP_HOME/toolchains" | grep -F -- "$want" | head -n 1)/bin"
	right && exit 0
fi ;;
node)
	if has fnm; then fnm install "$want" && lend "$(dirname "$(fnm exec --using "$want" sh -c 'command -v node')")" && right && exit 0; fi
	if [ -s "${NVM_DIR:-$HOME/.nvm}/nvm.sh" ]; then
		lend "$(set +u; . "${NVM_DIR:-$HOME/.nvm}/nvm.sh"; nvm install "$want" >&2; dirname "$(nvm which "$want")")" && right && exit 0
	fi ;;
python)
	if has uv; then uv python install "$want" && lend "$(dirname "$(uv python find "$want")")" && right && exit 0; fi
	if has pyenv; then pyenv install -s "$want" && lend "$(PYENV_VERSION="$want" pyenv prefix)/bin" && right && exit 0; fi ;;
esac
if has mise; then mise install "$tool@$want" && lend "$(mise where "$tool@$want")/bin" && right && exit 0; fi
if has asdf; then
	plugin=$tool
	case $tool in node) plugin=nodejs ;; go) plugin=golang ;; esac
	asdf install "$plugin" "$want" && lend "$(asdf where "$plugin" "$want")/bin" && right && exit 0
fi
there=$(say 2>/dev/null | head -n 1) || there=
echo "cannot provide $tool $want: ${there:-it is not} there, and neither an installer of its own nor mise or asdf could install it" >&2
exit 1
`

// firstInPath puts the tools of goldens before everything else, where the
// configuration names some.
func firstInPath(env map[string]string, home string, tools map[string]string) {
	if len(tools) > 0 {
		env["PATH"] = strings.Join([]string{toolsInside(home), env["PATH"]}, ":")
	}
}
